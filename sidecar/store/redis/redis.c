#include "store/redis/redis.h"

#include "base/memory.h"
#include "store/redis/redis_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of its time an acquire waits until the releases are listened to. */
#define HOLD_SHARE 4

static struct redis_store *of(struct store *store) {
    return (struct redis_store *)store; /* its first member */
}

static void submit(struct store *base, enum store_event_type type,
                   const struct store_request *request) {
    struct redis_store *store = of(base);
    store->pending[request->election] = (struct redis_pending){.type = type, .request = *request};
    if (store->url.sentinel) {
        redis_watcher_start(&store->watcher);
    }
    if (store->subscriber.state == REDIS_SUBSCRIBER_IDLE) {
        redis_subscriber_kick(&store->subscriber, request->timeout_ns);
    }
    /* First listen, then try: a release in between would be missed. */
    bool hold = type == STORE_ACQUIRED && !redis_subscriber_is_settled(&store->subscriber);
    redis_link_submit(&store->link, request->election, request->timeout_ns,
                      hold ? request->timeout_ns / HOLD_SHARE : 0);
}

static void redis_acquire(struct store *store, const struct store_request *request) {
    submit(store, STORE_ACQUIRED, request);
}

static void redis_renew(struct store *store, const struct store_request *request) {
    submit(store, STORE_RENEWED, request);
}

static void redis_release(struct store *store, const struct store_request *request) {
    submit(store, STORE_RELEASED, request);
}

static void redis_lock_space(const struct store *base, size_t election, char *text, size_t size) {
    const struct redis_store *store = (const struct redis_store *)base;
    size_t run_id = strcspn(store->server, ":");
    if (size == 0) {
        return;
    }
    text[0] = '\0';
    if (run_id > 0) {
        char space[REDIS_NAME_SIZE];
        redis_names_space(space, sizeof space, store->setup.namespace_,
                          store->setup.elections[election]);
        snprintf(text, size, "%.*s/%u/%s", (int)run_id, store->server, store->url.database, space);
    }
}

/* All handles are gone. */
static void on_empty(void *context) {
    struct redis_store *store = context;
    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;
    redis_link_finish(&store->link);
    free(store->pending);
    free(store->held);
    redis_tls_destroy(store->tls);
    explicit_bzero(&store->url, sizeof store->url);
    free(store);
    closed(closed_context);
}

static void redis_close(struct store *base, void (*closed)(void *context), void *context) {
    struct redis_store *store = of(base);
    store->closed = closed;
    store->closed_context = context;
    store->lives.closing = true;
    redis_link_close(&store->link);
    redis_subscriber_close(&store->subscriber);
    redis_resolver_cancel(&store->resolver);
    if (store->url.sentinel) {
        redis_watcher_close(&store->watcher);
        redis_sentinels_cancel(&store->sentinels);
    }
}

static bool redis_check(const char *url, struct error *error) {
    struct redis_url parsed;
    bool right = redis_url_parse(url, &parsed, error);
    explicit_bzero(&parsed, sizeof parsed);
    return right;
}

static bool redis_uses_tls(const char *url) {
    struct redis_url parsed;
    struct error ignored;
    bool tls = redis_url_parse(url, &parsed, &ignored) && parsed.tls;
    explicit_bzero(&parsed, sizeof parsed);
    return tls;
}

static bool redis_reload_tls(struct store *base, struct store_tls_finding *finding) {
    struct redis_store *store = of(base);
    *finding = (struct store_tls_finding){.key_exposed = false};
    return store->tls == NULL || redis_tls_reload(store->tls, finding);
}

static bool init_tls(struct redis_store *store, struct error *error) {
    struct store_tls_finding finding;
    if (!store->url.tls) {
        return true; /* OpenSSL is not touched */
    }
    store->tls = redis_tls_create(&store->setup.tls, &finding);
    if (store->tls == NULL) {
        error_set(error, "%.200s %.250s", store->setup.tls.paths[finding.file], finding.error.text);
        return false;
    }
    return true;
}

static bool check_names(const struct store_setup *setup, struct error *error) {
    for (size_t i = 0; i < setup->election_count; i++) {
        struct redis_names names;
        if (!redis_names_init(&names, setup->namespace_, setup->elections[i])) {
            error_set(error, "namespace and election \"%.40s\" are too long for a key",
                      setup->elections[i]);
            return false;
        }
    }
    return true;
}

static struct store *redis_open(const struct store_setup *setup, struct error *error) {
    struct redis_store *store = memory_zeroed(1, sizeof *store);
    store->base.ops = &redis_store_ops;
    store->setup = *setup;
    store->troubled = setup->election_count;
    store->replicas.wanted = setup->wait_replicas;
    if (!redis_url_parse(setup->url, &store->url, error) || !check_names(setup, error) ||
        !init_tls(store, error)) {
        explicit_bzero(&store->url, sizeof store->url);
        free(store);
        return NULL;
    }
    store->pending = memory_zeroed(setup->election_count, sizeof *store->pending);
    if (setup->wait_replicas > 0) {
        store->held = memory_zeroed(setup->election_count, sizeof *store->held);
    }
    store->lives.empty = on_empty;
    store->lives.context = store;
    redis_connections_init(store);
    return &store->base;
}

const struct store_ops redis_store_ops = {
    .kind = "redis",
    .poll_ns = 0,
    .claims = redis_url_claims,
    .check = redis_check,
    .uses_tls = redis_uses_tls,
    .check_tls = redis_tls_check,
    .reload_tls = redis_reload_tls,
    .open = redis_open,
    .acquire = redis_acquire,
    .renew = redis_renew,
    .release = redis_release,
    .lock_space = redis_lock_space,
    .close = redis_close,
};
