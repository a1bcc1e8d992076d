#ifndef GAVEL_STORE_REDIS_TLS_H
#define GAVEL_STORE_REDIS_TLS_H

#include "store/store.h"

/*
 * TLS 1.2 or later, as a client, without input and output of its own: bytes in, bytes out. The
 * server's certificate chain and its name are verified, there is no way not to. Loop thread only.
 */

/* What connections share: whom to trust, and who we are. Heap. */
struct redis_tls;

/* Reads the files; system CAs where none are given. NULL: `finding` says which file is wrong. */
struct redis_tls *redis_tls_create(const struct store_tls *files,
                                   struct store_tls_finding *finding);
/* Reads the same files again. False: all stays as it was. */
bool redis_tls_reload(struct redis_tls *tls, struct store_tls_finding *finding);
/* Sessions that exist go on. NULL is allowed. */
void redis_tls_destroy(struct redis_tls *tls);
/* The same checks as redis_tls_create(), without a look at the system's CAs. */
bool redis_tls_check(const struct store_tls *files, struct store_tls_finding *finding);

/* One connection. Heap. What is wrong with it shows in its first redis_tls_next(). */
struct redis_tls_session;

/* `host` is the name or address that the server's certificate must be for. */
struct redis_tls_session *redis_tls_begin(const struct redis_tls *tls, const char *host);
void redis_tls_end(struct redis_tls_session *session);

enum redis_tls_result {
    REDIS_TLS_WAIT,   /* more bytes are needed */
    REDIS_TLS_OPEN,   /* the handshake is over: said once, before it nothing can be written */
    REDIS_TLS_DATA,   /* *got decrypted bytes are in `out` */
    REDIS_TLS_CLOSED, /* by the server, in good order */
    REDIS_TLS_BROKEN, /* for good; redis_tls_problem() says why */
};

/* Takes bytes that came. Then redis_tls_next() is due until it says neither OPEN nor DATA; it is
 * due once at the beginning too, without any bytes. */
#define REDIS_TLS_FEED_MAX 4096
void redis_tls_feed(struct redis_tls_session *session, const char *bytes, size_t size);
enum redis_tls_result redis_tls_next(struct redis_tls_session *session, char *out, size_t size,
                                     size_t *got);

/* Encrypts. False: it is not open. */
bool redis_tls_write(struct redis_tls_session *session, const char *bytes, size_t size);
/* Says goodbye to the server, where that makes sense. */
void redis_tls_close(struct redis_tls_session *session);

/* Bytes for the server, after any of the above: how many, and the first `size` of them. */
size_t redis_tls_pending(const struct redis_tls_session *session);
void redis_tls_take(struct redis_tls_session *session, char *bytes, size_t size);

/* For people, at most REDIS_TLS_TEXT bytes; good until the next call for this session. */
#define REDIS_TLS_TEXT 128
const char *redis_tls_problem(const struct redis_tls_session *session);
/* The same for a connection that ended because of `why`: what that may mean at this point. */
const char *redis_tls_ended(struct redis_tls_session *session, const char *why);

#endif
