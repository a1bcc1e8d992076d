#include "redis_subject.h"

#include "../unit/store/tls_kit.h"

/* The Redis subject through TLS, with a certificate for either side. */

static struct tls_identity ca, server_identity, client_identity;

static void make_identities(struct contract_space *space) {
    struct tls_plan plans[] = {
        {.file = "ca"}, {.file = "server", .names = "IP:127.0.0.1"}, {.file = "client"}};
    ca = tls_kit_issue(NULL, &plans[0]);
    server_identity = tls_kit_issue(&ca, &plans[1]);
    client_identity = tls_kit_issue(&ca, &plans[2]);
    space->tls.paths[STORE_TLS_CA] = ca.certificate_path;
    space->tls.paths[STORE_TLS_CERTIFICATE] = client_identity.certificate_path;
    space->tls.paths[STORE_TLS_KEY] = client_identity.key_path;
}

static void stop(struct contract_space *space) {
    if (space->data != NULL) {
        redis_server_stop(space->data);
    }
    tls_kit_free(&ca);
    tls_kit_free(&server_identity);
    tls_kit_free(&client_identity);
    tls_kit_finish();
}

static bool start(struct contract_space *space, char *why, size_t why_size) {
    static char port[8]; /* of the command line, also when it is started again */
    make_identities(space);
    const char *const options[] = {"--tls-port",
                                   port,
                                   "--tls-cert-file",
                                   server_identity.certificate_path,
                                   "--tls-key-file",
                                   server_identity.key_path,
                                   "--tls-ca-cert-file",
                                   ca.certificate_path,
                                   "--tls-auth-clients",
                                   "yes",
                                   NULL};
    unsigned number = redis_server_free_port();
    snprintf(port, sizeof port, "%u", number);
    space->data = redis_server_start(options);
    if (space->data == NULL) {
        snprintf(why, why_size, "redis-server cannot be started with TLS");
        stop(space);
        return false;
    }
    snprintf(space->url, sizeof space->url, "rediss://127.0.0.1:%u/3", number);
    return true;
}

const struct contract_subject contract_subject = REDIS_SUBJECT("redis over TLS");
