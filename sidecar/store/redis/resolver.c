#include "store/redis/resolver.h"

#include <stdio.h>
#include <string.h>

void redis_resolver_init(struct redis_resolver *resolver, uv_loop_t *loop,
                         struct store_lives *lives, const char *host, uint16_t port) {
    memset(resolver, 0, sizeof *resolver);
    resolver->loop = loop;
    resolver->lives = lives;
    snprintf(resolver->host, sizeof resolver->host, "%s", host);
    resolver->port = port;
    resolver->request.data = resolver;
}

void redis_resolver_point(struct redis_resolver *resolver, const char *host, uint16_t port) {
    if (strcmp(resolver->host, host) != 0 || resolver->port != port) {
        snprintf(resolver->host, sizeof resolver->host, "%s", host);
        resolver->port = port;
        resolver->stale = resolver->busy;
    }
}

bool redis_resolver_literal(const struct redis_resolver *resolver,
                            struct redis_addresses *addresses) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memset(addresses, 0, sizeof *addresses);
    if (uv_ip4_addr(resolver->host, resolver->port, &v4) == 0) {
        memcpy(&addresses->list[0], &v4, sizeof v4);
    } else if (uv_ip6_addr(resolver->host, resolver->port, &v6) == 0) {
        memcpy(&addresses->list[0], &v6, sizeof v6);
    } else {
        return false;
    }
    addresses->count = 1;
    return true;
}

static void collect(struct redis_addresses *addresses, const struct addrinfo *found) {
    addresses->count = 0;
    for (; found != NULL && addresses->count < REDIS_ADDRESSES_MAX; found = found->ai_next) {
        struct sockaddr_storage *slot = &addresses->list[addresses->count];
        if ((found->ai_family == AF_INET || found->ai_family == AF_INET6) &&
            found->ai_addrlen <= sizeof *slot) {
            memset(slot, 0, sizeof *slot);
            memcpy(slot, found->ai_addr, found->ai_addrlen);
            addresses->count++;
        }
    }
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found);

static bool look_up(struct redis_resolver *resolver, const char **why) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)resolver->port);
    int status =
        uv_getaddrinfo(resolver->loop, &resolver->request, on_found, resolver->host, port, &hints);
    if (status != 0) {
        *why = uv_strerror(status);
        return false;
    }
    resolver->busy = true;
    store_lives_begin(resolver->lives);
    return true;
}

static bool is_awaited(const struct redis_resolver *resolver) {
    for (size_t i = 0; i < REDIS_WAITERS_MAX; i++) {
        if (resolver->waiters[i].context != NULL) {
            return true;
        }
    }
    return false;
}

/* To all who wait; addresses is NULL when there are none. */
static void answer(struct redis_resolver *resolver, const struct redis_addresses *addresses,
                   const char *why) {
    struct redis_waiter waiters[REDIS_WAITERS_MAX];
    memcpy(waiters, resolver->waiters, sizeof waiters);
    memset(resolver->waiters, 0, sizeof resolver->waiters);
    for (size_t i = 0; i < REDIS_WAITERS_MAX; i++) {
        if (waiters[i].context != NULL && !resolver->lives->closing) {
            waiters[i].done(waiters[i].context, addresses, why);
        }
    }
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
    struct redis_resolver *resolver = request->data;
    struct redis_addresses addresses;
    const char *why = status != 0 ? uv_strerror(status) : "the name has no address";
    bool again = resolver->stale && is_awaited(resolver) && !resolver->lives->closing;

    collect(&addresses, status == 0 ? found : NULL);
    uv_freeaddrinfo(found);
    resolver->busy = false;
    resolver->stale = false;
    if (!again) {
        answer(resolver, status == 0 && addresses.count > 0 ? &addresses : NULL, why);
    } else if (!look_up(resolver, &why)) {
        answer(resolver, NULL, why);
    }
    store_lives_end(resolver->lives);
}

bool redis_resolver_ask(struct redis_resolver *resolver,
                        void (*done)(void *context, const struct redis_addresses *addresses,
                                     const char *why),
                        void *context, const char **why) {
    struct redis_waiter *free_slot = NULL;
    for (size_t i = 0; i < REDIS_WAITERS_MAX; i++) {
        if (resolver->waiters[i].context == NULL) {
            free_slot = &resolver->waiters[i];
        }
    }
    if (free_slot == NULL) {
        *why = "too many wait for one look-up";
        return false;
    }
    if (!resolver->busy && !look_up(resolver, why)) {
        return false;
    }
    free_slot->done = done;
    free_slot->context = context;
    return true;
}

void redis_resolver_forget(struct redis_resolver *resolver, const void *context) {
    for (size_t i = 0; i < REDIS_WAITERS_MAX; i++) {
        if (resolver->waiters[i].context == context) {
            resolver->waiters[i].context = NULL;
        }
    }
}

void redis_resolver_cancel(struct redis_resolver *resolver) {
    if (resolver->busy) {
        (void)uv_cancel((uv_req_t *)&resolver->request); /* fails when a thread is at it already */
    }
}
