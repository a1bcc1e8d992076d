#include "tls_test.h"

#include <string.h>

struct tls_test_identities tls_ids;
struct tls_pair tls_pair;

int tls_test_make(void **state) {
    (void)state;
    struct tls_plan plans[] = {{.file = "ca"},
                               {.file = "other-ca"},
                               {.file = "server", .names = "DNS:redis.example,IP:127.0.0.1"},
                               {.file = "client"},
                               {.file = "stranger"}};
    tls_ids.ca = tls_kit_issue(NULL, &plans[0]);
    tls_ids.other_ca = tls_kit_issue(NULL, &plans[1]);
    tls_ids.server = tls_kit_issue(&tls_ids.ca, &plans[2]);
    tls_ids.client = tls_kit_issue(&tls_ids.ca, &plans[3]);
    tls_ids.stranger = tls_kit_issue(&tls_ids.other_ca, &plans[4]);
    return 0;
}

int tls_test_free(void **state) {
    (void)state;
    struct tls_identity *all[] = {&tls_ids.ca, &tls_ids.other_ca, &tls_ids.server, &tls_ids.client,
                                  &tls_ids.stranger};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tls_kit_free(all[i]);
    }
    tls_kit_finish();
    return 0;
}

struct store_tls tls_test_trust(const struct tls_identity *ca, const struct tls_identity *client) {
    struct store_tls files = {.paths = {[STORE_TLS_CA] = ca->certificate_path}};
    if (client != NULL) {
        files.paths[STORE_TLS_CERTIFICATE] = client->certificate_path;
        files.paths[STORE_TLS_KEY] = client->key_path;
    }
    return files;
}

void tls_test_begin(const struct tls_identity *server, int version,
                    const struct tls_identity *client_ca, const struct tls_identity *client) {
    struct store_tls files = tls_test_trust(&tls_ids.ca, client);
    tls_pair_begin(&tls_pair, server, version, client_ca);
    tls_pair_connect(&tls_pair, &files, TLS_TEST_HOST);
}

void tls_test_open(int version) {
    tls_test_begin(&tls_ids.server, version, NULL, NULL);
    tls_pair_run(&tls_pair);
    assert_true(tls_pair.opened);
    assert_int_equal(tls_pair.last, REDIS_TLS_WAIT);
}

void tls_test_broken(const char *word) {
    assert_int_equal(tls_pair.last, REDIS_TLS_BROKEN);
    const char *problem = redis_tls_problem(tls_pair.session);
    if (strstr(problem, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, problem);
    }
    assert_true(strlen(problem) < REDIS_TLS_TEXT - 1); /* not cut */
    assert_false(redis_tls_write(tls_pair.session, "x", 1));
    size_t pending = redis_tls_pending(tls_pair.session); /* an alert, where that makes sense */
    redis_tls_close(tls_pair.session);
    assert_int_equal(redis_tls_pending(tls_pair.session), pending);
    assert_string_equal(redis_tls_ended(tls_pair.session, "the end"), problem);
}
