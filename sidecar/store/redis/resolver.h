#ifndef GAVEL_STORE_REDIS_RESOLVER_H
#define GAVEL_STORE_REDIS_RESOLVER_H

#include "store/lives.h"
#include "store/redis/url.h"

#include <stdint.h>
#include <uv.h>

#define REDIS_ADDRESSES_MAX 16
#define REDIS_WAITERS_MAX 3 /* the connection for requests, the one that listens, the watcher */

struct redis_addresses {
    size_t count;
    struct sockaddr_storage list[REDIS_ADDRESSES_MAX];
};

/*
 * Looks one name up, off the loop. One look-up at a time: whoever asks while one is
 * under way gets its answer, so that a name server that hangs cannot take all threads. The
 * caller's memory, which must live until the look-up is over (it is counted in `lives`).
 */
struct redis_resolver {
    uv_getaddrinfo_t request;
    uv_loop_t *loop;
    struct store_lives *lives;
    char host[REDIS_HOST_MAX + 1];
    uint16_t port;
    bool busy;
    bool stale; /* ... with the name before: its answer is for nobody */
    struct redis_waiter {
        /* addresses is NULL when the look-up failed, and why says why. */
        void (*done)(void *context, const struct redis_addresses *addresses, const char *why);
        void *context; /* NULL: no waiter */
    } waiters[REDIS_WAITERS_MAX];
};

void redis_resolver_init(struct redis_resolver *resolver, uv_loop_t *loop,
                         struct store_lives *lives, const char *host, uint16_t port);

/* Another name from now on. Whoever waits for the one before gets the answer for this one. */
void redis_resolver_point(struct redis_resolver *resolver, const char *host, uint16_t port);

/* The host as an address, where it is one; no look-up. */
bool redis_resolver_literal(const struct redis_resolver *resolver,
                            struct redis_addresses *addresses);

/* Asks. False: it cannot be asked, *why says why; else `done` is called once, later. */
bool redis_resolver_ask(struct redis_resolver *resolver,
                        void (*done)(void *context, const struct redis_addresses *addresses,
                                     const char *why),
                        void *context, const char **why);
/* `done` is not called any more for this context. */
void redis_resolver_forget(struct redis_resolver *resolver, const void *context);
/* Cancels what can be cancelled; for closing. */
void redis_resolver_cancel(struct redis_resolver *resolver);

#endif
