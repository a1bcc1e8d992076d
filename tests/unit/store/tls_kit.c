#include "tls_kit.h"

#include <ftw.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S 86400

static char folder[32];

const char *tls_kit_folder(void) {
    if (folder[0] == '\0') {
        (void)strcpy(folder, "/tmp/gavel-tls-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void tls_kit_finish(void) {
    if (folder[0] != '\0') {
        (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        folder[0] = '\0';
    }
}

const char *tls_kit_write(const char *file, const char *bytes, size_t size) {
    static char path[96];
    (void)snprintf(path, sizeof path, "%s/%s", tls_kit_folder(), file);
    (void)unlink(path);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void add_extension(X509 *certificate, int id, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void write_files(struct tls_identity *identity, const char *name) {
    (void)snprintf(identity->certificate_path, sizeof identity->certificate_path, "%s/%s.crt",
                   tls_kit_folder(), name);
    (void)snprintf(identity->key_path, sizeof identity->key_path, "%s/%s.key", tls_kit_folder(),
                   name);
    FILE *out = fopen(identity->certificate_path, "w");
    assert_non_null(out);
    assert_int_equal(PEM_write_X509(out, identity->certificate), 1);
    assert_int_equal(fclose(out), 0);
    out = fopen(identity->key_path, "w");
    assert_non_null(out);
    assert_int_equal(PEM_write_PKCS8PrivateKey(out, identity->key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(identity->key_path, 0600), 0);
}

struct tls_identity tls_kit_issue(const struct tls_identity *ca, const struct tls_plan *plan) {
    static long serial = 1;
    struct tls_identity identity = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
    X509 *certificate = identity.certificate;
    assert_true(certificate != NULL && identity.key != NULL);
    (void)X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), plan->from_s != 0 ? plan->from_s : -DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(certificate), plan->till_s != 0 ? plan->till_s : DAY_S);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)plan->file, -1, -1, 0);
    X509_set_issuer_name(certificate,
                         X509_get_subject_name(ca != NULL ? ca->certificate : certificate));
    X509_set_pubkey(certificate, identity.key);
    add_extension(certificate, NID_basic_constraints,
                  ca == NULL ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (plan->names != NULL) {
        add_extension(certificate, NID_subject_alt_name, plan->names);
    }
    assert_true(X509_sign(certificate, ca != NULL ? ca->key : identity.key, EVP_sha256()) > 0);
    write_files(&identity, plan->file);
    return identity;
}

void tls_kit_free(struct tls_identity *identity) {
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

void tls_pair_begin(struct tls_pair *pair, const struct tls_identity *server, int version,
                    const struct tls_identity *client_ca) {
    memset(pair, 0, sizeof *pair);
    pair->chunk = REDIS_TLS_FEED_MAX;
    pair->server_context = SSL_CTX_new(TLS_server_method());
    SSL_CTX *context = pair->server_context;
    assert_non_null(context);
    assert_int_equal(SSL_CTX_use_certificate(context, server->certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, server->key), 1);
    (void)SSL_CTX_set_min_proto_version(context, version);
    (void)SSL_CTX_set_max_proto_version(context, version);
    if (client_ca != NULL) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), client_ca->certificate);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    pair->server = SSL_new(context);
    pair->server_in = BIO_new(BIO_s_mem());
    pair->server_out = BIO_new(BIO_s_mem());
    SSL_set_bio(pair->server, pair->server_in, pair->server_out);
    SSL_set_accept_state(pair->server);
}

/* Does what the owner of a session does. */
static void turn(struct tls_pair *pair) {
    size_t size = 0;
    do {
        if (redis_tls_problem(pair->session)[0] == '\0') {
            ERR_raise(ERR_LIB_USER, ERR_R_FATAL); /* of somebody else: not to be stumbled on */
        }
        pair->last = redis_tls_next(pair->session, pair->got + pair->got_size,
                                    sizeof pair->got - pair->got_size, &size);
        assert_int_equal(ERR_peek_error(), 0); /* nor is anything left for others */
        if (pair->last == REDIS_TLS_OPEN) {
            assert_false(pair->opened);
            pair->opened = true;
        }
        pair->got_size += size;
        assert_true(size == 0 || pair->opened);
    } while (pair->last == REDIS_TLS_OPEN || pair->last == REDIS_TLS_DATA);
}

void tls_pair_connect(struct tls_pair *pair, const struct store_tls *files, const char *host) {
    struct store_tls_finding finding;
    pair->tls = redis_tls_create(files, &finding);
    if (pair->tls == NULL) {
        fail_msg("%s", finding.error.text);
    }
    pair->session = redis_tls_begin(pair->tls, host);
    turn(pair);
}

void tls_pair_feed(struct tls_pair *pair, const char *bytes, size_t size) {
    while (size > 0) {
        size_t piece = size < pair->chunk ? size : pair->chunk;
        redis_tls_feed(pair->session, bytes, piece);
        turn(pair);
        bytes += piece;
        size -= piece;
    }
}

static bool to_server(struct tls_pair *pair) {
    char bytes[1 << 16];
    size_t size = redis_tls_pending(pair->session);
    assert_true(size <= sizeof bytes);
    if (size == 0) {
        return false;
    }
    redis_tls_take(pair->session, bytes, size);
    assert_int_equal(redis_tls_pending(pair->session), 0);
    assert_int_equal(BIO_write(pair->server_in, bytes, (int)size), (int)size);
    return true;
}

static bool to_session(struct tls_pair *pair) {
    static char bytes[1 << 20];
    int size = BIO_read(pair->server_out, bytes, sizeof bytes);
    if (size <= 0) {
        return false;
    }
    tls_pair_feed(pair, bytes, (size_t)size);
    return true;
}

void tls_pair_run(struct tls_pair *pair) {
    bool moved = true;
    while (moved) {
        moved = to_server(pair);
        if (!SSL_is_init_finished(pair->server)) {
            (void)SSL_do_handshake(pair->server);
        } else if (moved) {
            char byte;
            (void)SSL_peek(pair->server, &byte, 1); /* takes what is no data */
        }
        ERR_clear_error();
        moved = to_session(pair) || moved;
    }
}

void tls_pair_serve(struct tls_pair *pair, const char *bytes, size_t size) {
    assert_int_equal(SSL_write(pair->server, bytes, (int)size), (int)size);
}

void tls_pair_end(struct tls_pair *pair) {
    if (pair->session != NULL) {
        redis_tls_end(pair->session);
    }
    redis_tls_destroy(pair->tls);
    SSL_free(pair->server);
    SSL_CTX_free(pair->server_context);
    memset(pair, 0, sizeof *pair);
}
