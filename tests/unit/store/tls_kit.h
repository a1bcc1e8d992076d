#ifndef GAVEL_TESTS_TLS_KIT_H
#define GAVEL_TESTS_TLS_KIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/tls.h"

#include <openssl/ssl.h>

/*
 * Certificates of the test's own, in a folder of its own, and a TLS server in memory that talks to
 * one session.
 */
struct tls_identity {
    X509 *certificate;
    EVP_PKEY *key;
    char certificate_path[96];
    char key_path[96];
};

/* What a certificate is made of. */
struct tls_plan {
    const char *file;   /* FILE.crt and FILE.key in the folder */
    const char *names;  /* "DNS:redis.example,IP:127.0.0.1"; NULL: none */
    int from_s, till_s; /* from now; both 0: valid for a day */
};

/* Makes the folder, where there is none yet; removed by tls_kit_finish(). */
const char *tls_kit_folder(void);
void tls_kit_finish(void);
/* Signed by `ca`, or by itself where that is NULL. Files are written. */
struct tls_identity tls_kit_issue(const struct tls_identity *ca, const struct tls_plan *plan);
void tls_kit_free(struct tls_identity *identity);
/* Writes a file in the folder; its path is good until the next call. */
const char *tls_kit_write(const char *file, const char *bytes, size_t size);

/* A session and its server. */
struct tls_pair {
    SSL_CTX *server_context;
    SSL *server;
    BIO *server_in, *server_out;
    struct redis_tls *tls;
    struct redis_tls_session *session;
    size_t chunk; /* bytes are delivered to the session in pieces of this size */
    enum redis_tls_result last;
    bool opened;       /* OPEN was said */
    char got[1 << 16]; /* what was decrypted */
    size_t got_size;
};

/* The server is `server`, it asks for a certificate of `client_ca` where that is not NULL.
 * `version` is the one that it speaks, 0: any. */
void tls_pair_begin(struct tls_pair *pair, const struct tls_identity *server, int version,
                    const struct tls_identity *client_ca);
/* The session: whom it trusts, and who it is. */
void tls_pair_connect(struct tls_pair *pair, const struct store_tls *files, const char *host);
/* Carries bytes to and fro until nothing moves any more. */
void tls_pair_run(struct tls_pair *pair);
/* Gives bytes to the session as they are. */
void tls_pair_feed(struct tls_pair *pair, const char *bytes, size_t size);
/* The server's data, encrypted, not yet delivered. */
void tls_pair_serve(struct tls_pair *pair, const char *bytes, size_t size);
void tls_pair_end(struct tls_pair *pair);

#endif
