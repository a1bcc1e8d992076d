#ifndef GAVEL_STORE_REDIS_TLS_INSIDE_H
#define GAVEL_STORE_REDIS_TLS_INSIDE_H

/* What the tls*.c files share. */

#include "store/redis/tls.h"

#include <openssl/ssl.h>

struct redis_tls_session {
    SSL *ssl;
    BIO *in;      /* what came; belongs to ssl, as does */
    BIO *out;     /* what is to leave */
    bool open;    /* the handshake is over */
    bool asked;   /* the server wants to see a certificate */
    bool data;    /* data came */
    size_t quiet; /* bytes that came since the last data */
    char host[64];
    struct error problem; /* empty: none; REDIS_TLS_TEXT bytes at most */
};

/* A context from the files (tls_files.c); NULL: see `finding`. */
SSL_CTX *redis_tls_context(const struct store_tls *files, bool system_cas,
                           struct store_tls_finding *finding);

/* Says in `problem` what OpenSSL's error queue tells of this session, and empties the queue
 * (tls_problem.c). */
void redis_tls_explain(struct redis_tls_session *session);

#endif
