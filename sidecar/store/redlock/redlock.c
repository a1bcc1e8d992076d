#include "store/redlock/redlock.h"

#include "base/clock.h"
#include "base/memory.h"
#include "store/redis/redis.h"
#include "store/redis/tls.h"
#include "store/redlock/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct redlock_store *of(struct store *store) {
    return (struct redlock_store *)store; /* its first member */
}

static void submit(struct store *base, enum store_event_type type, enum election_op op,
                   const struct store_request *request) {
    struct redlock_store *store = of(base);
    struct redlock_election *election = &store->elections[request->election];
    struct round_ask ask = {.op = op,
                            .seen_token = request->seen_token,
                            .wait_ns = request->wait_ns,
                            .take = request->take,
                            .raise_token = request->raise_token,
                            .clean = request->clean,
                            .token = request->token,
                            .timeout_ns = request->timeout_ns};
    memcpy(ask.nonce, request->nonce, NONCE_BYTES);
    election->type = type;
    round_start(&election->round, &ask, clock_now().boot_ns);
    redlock_drive(store, request->election);
}

static void redlock_acquire(struct store *store, const struct store_request *request) {
    submit(store, STORE_ACQUIRED, OP_ACQUIRE, request);
}

static void redlock_renew(struct store *store, const struct store_request *request) {
    submit(store, STORE_RENEWED, OP_RENEW, request);
}

static void redlock_release(struct store *store, const struct store_request *request) {
    submit(store, STORE_RELEASED, OP_RELEASE, request);
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/: the list in short. */
static uint64_t digest(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return hash;
}

static void redlock_lock_space(const struct store *base, size_t election, char *text, size_t size) {
    const struct redlock_store *store = (const struct redlock_store *)base;
    char space[REDIS_NAME_SIZE];
    redis_names_space(space, sizeof space, store->setup.namespace_,
                      store->setup.elections[election]);
    snprintf(text, size, "redlock-%zu-%016" PRIx64 "/%s", store->list.count,
             digest(store->list.all), space);
}

static void end_one(struct redlock_store *store) {
    store->alive--;
    if (store->alive > 0) {
        return;
    }
    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;
    redlock_list_finish(&store->list);
    free(store->elections);
    free(store);
    closed(closed_context);
}

static void on_node_closed(void *context) {
    end_one(context);
}

static void on_timer_closed(uv_handle_t *handle) {
    end_one(handle->data);
}

static void redlock_close(struct store *base, void (*closed)(void *context), void *context) {
    struct redlock_store *store = of(base);
    store->closed = closed;
    store->closed_context = context;
    store->closing = true;
    for (size_t i = 0; i < store->list.count; i++) {
        struct store *node = store->nodes[i].store;
        node->ops->close(node, on_node_closed, store);
    }
    uv_close((uv_handle_t *)&store->timer, on_timer_closed);
}

static bool redlock_check(const char *url, struct error *error) {
    struct redlock_list list;
    bool right = redlock_list_parse(url, &list, error);
    redlock_list_finish(&list);
    return right;
}

static bool redlock_uses_tls(const char *url) {
    struct redlock_list list;
    struct error ignored;
    bool tls = redlock_list_parse(url, &list, &ignored) && list.tls;
    redlock_list_finish(&list);
    return tls;
}

/* All or none: the files are the same for all nodes. */
static bool redlock_reload_tls(struct store *base, struct store_tls_finding *finding) {
    struct redlock_store *store = of(base);
    *finding = (struct store_tls_finding){.key_exposed = false};
    if (!store->list.tls) {
        return true;
    }
    if (!redis_tls_check(&store->setup.tls, finding)) {
        return false;
    }
    bool all = true;
    for (size_t i = 0; i < store->list.count; i++) {
        struct store_tls_finding one;
        if (!redis_store_ops.reload_tls(store->nodes[i].store, &one)) {
            *finding = one;
            all = false;
        }
    }
    return all;
}

static bool open_node(struct redlock_store *store, size_t index, struct error *error) {
    struct redlock_node *node = &store->nodes[index];
    struct store_setup setup = store->setup;
    node->owner = store;
    node->index = index;
    setup.url = store->list.urls[index];
    setup.node_list = store->list.all;
    setup.status = &node->status;
    setup.on_event = redlock_on_event;
    setup.context = node;
    node->store = redis_store_ops.open(&setup, error);
    return node->store != NULL;
}

static void on_half_closed(void *context) {
    (void)context;
}

/* What has been opened so far is closed again; the nodes' own memory goes with their handles. */
static struct store *give_up(struct redlock_store *store) {
    for (size_t i = 0; i < store->list.count; i++) {
        if (store->nodes[i].store != NULL) {
            redis_store_ops.close(store->nodes[i].store, on_half_closed, NULL);
        }
    }
    redlock_list_finish(&store->list);
    free(store->elections);
    free(store);
    return NULL;
}

static struct store *redlock_open(const struct store_setup *setup, struct error *error) {
    struct redlock_store *store = memory_zeroed(1, sizeof *store);
    store->base.ops = &redlock_store_ops;
    store->setup = *setup;
    store->elections = memory_zeroed(setup->election_count, sizeof *store->elections);
    if (!redlock_list_parse(setup->url, &store->list, error)) {
        return give_up(store);
    }
    struct round_config config = {
        .node_count = store->list.count, .ttl_ns = setup->ttl_ns, .margin_ns = setup->margin_ns};
    for (size_t i = 0; i < setup->election_count; i++) {
        round_init(&store->elections[i].round, &config);
    }
    /* Those with TLS first: they are the ones that may fail, all of them or none. */
    for (size_t i = 0; i < 2 * store->list.count; i++) {
        size_t node = i % store->list.count;
        bool tls = redis_store_ops.uses_tls(store->list.urls[node]);
        if (tls == (i < store->list.count) && !open_node(store, node, error)) {
            return give_up(store);
        }
    }
    (void)uv_timer_init(setup->loop, &store->timer);
    store->timer.data = store;
    store->alive = store->list.count + 1;
    return &store->base;
}

const struct store_ops redlock_store_ops = {
    .kind = "redlock",
    .poll_ns = 0,
    .claims = redlock_list_claims,
    .check = redlock_check,
    .uses_tls = redlock_uses_tls,
    .check_tls = redis_tls_check,
    .reload_tls = redlock_reload_tls,
    .open = redlock_open,
    .acquire = redlock_acquire,
    .renew = redlock_renew,
    .release = redlock_release,
    .lock_space = redlock_lock_space,
    .close = redlock_close,
};
