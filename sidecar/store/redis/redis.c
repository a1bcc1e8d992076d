#include "store/redis/redis.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/redis/answer.h"
#include "store/redis/failure.h"
#include "store/redis/link.h"
#include "store/redis/replicas.h"
#include "store/redis/steps.h"
#include "store/redis/subscriber.h"
#include "store/redis/tls.h"
#include "store/redis/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_LEAST_NS (50 * NS_PER_MS)
#define BACKOFF_MOST_NS (900 * NS_PER_MS)
/* How much of its time an acquire waits until the releases are listened to. */
#define HOLD_SHARE 4
#define LOG_EVERY_MS 10000
#define OPENED_EVERY_MS 1000

struct pending {
    enum store_event_type type;
    struct store_request request;
    struct store_event held; /* the answer, until the replicas have acknowledged it */
};

struct redis_store {
    struct store base;
    struct store_setup setup;
    struct redis_url url;
    struct redis_tls *tls; /* NULL: plain */
    struct redis_lives lives;
    struct redis_resolver resolver;   /* of the URL's server ... */
    struct redis_sentinels sentinels; /* ... or else those who know where it is */
    struct redis_watcher watcher;     /* of the Sentinels; only with them */
    struct redis_link link;
    struct redis_subscriber subscriber;
    struct redis_replicas replicas;
    struct redis_names *names;
    struct pending *pending;
    size_t troubled; /* the election that `problem` is about; the count: all of them */
    struct redis_steps steps;
    struct log_limit steps_limit;
    struct log_limit opened_limit;
    char server[SERVER_ID_MAX]; /* the last that answered */
    bool connected_before;
    void (*closed)(void *context);
    void *closed_context;
};

static struct redis_store *of(struct store *store) {
    return (struct redis_store *)store; /* its first member */
}

static void set_problem(struct redis_store *store, size_t election, const char *text) {
    store->troubled = election;
    redis_failure_text(store->setup.status->problem, sizeof store->setup.status->problem, text,
                       strlen(text));
}

static void clear_problem(struct redis_store *store, size_t election) {
    if (store->troubled == election || store->troubled == store->setup.election_count) {
        store->setup.status->problem[0] = '\0';
    }
}

static void watch_clock(struct redis_store *store, const struct store_reply *reply) {
    uint64_t suppressed = 0;
    struct vouch_sample sample = {.server = reply->server,
                                  .server_now_us = reply->server_now_us,
                                  .sent_ns = reply->sent.boot_ns,
                                  .arrived_ns = clock_now().boot_ns};
    int64_t step_ns = redis_steps_add(&store->steps, &sample, store->setup.margin_ns);
    if (step_ns == 0) {
        return;
    }
    store->setup.status->clock_steps++;
    if (log_allow(&store->steps_limit, LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_WARN, "clock-step", LOG_TEXT("clock", "store"),
                  LOG_NUMBER("step_ms", step_ns / NS_PER_MS), LOG_NUMBER("suppressed", suppressed));
    }
}

static struct redis_command on_request(void *context, size_t op, bool body) {
    struct redis_store *store = context;
    const struct pending *pending = &store->pending[op];
    return redis_command_script(pending->type, &store->setup, &pending->request, &store->names[op],
                                body);
}

/* What people have to know of an answer that is right in itself. */
static void note_strange(struct redis_store *store, struct store_event *event) {
    size_t op = event->election;
    bool no = event->reply.outcome == OUTCOME_NO;
    if (no && event->reply.reason == REASON_FOREIGN_VALUE) {
        snprintf(event->text, sizeof event->text, "%.100s holds a value that gavel did not write",
                 store->names[op].lease);
        set_problem(store, op, event->text);
    } else if (store->steps.stands) {
        static const char words[] = "the server's clock stands still: no lease in it runs out";
        set_problem(store, store->setup.election_count, words);
        if (no) { /* that is what this candidate waits for */
            snprintf(event->text, sizeof event->text, "%s", words);
        }
    } else {
        clear_problem(store, op);
    }
}

static void deliver(struct redis_store *store, struct store_event *event) {
    store->setup.status->up = true;
    note_strange(store, event);
    store->setup.on_event(store->setup.context, event);
}

static enum redis_link_taken on_answer(void *context, size_t op, struct instant sent,
                                       const redisReply *answer) {
    struct redis_store *store = context;
    struct store_event event = {.type = store->pending[op].type, .election = op};
    if (!redis_answer_read(answer, event.type, &event.reply)) {
        return REDIS_LINK_STRANGE;
    }
    event.reply.sent = sent;
    event.reply.warnings &= ~(uint32_t)WARNING_STORE_REPLICATED_ASYNC; /* depends on more */
    redis_replicas_heard(&store->replicas, store->sentinels.replicas);
    event.reply.warnings |=
        store->link.warnings |
        redis_replicas_warnings(&store->replicas, redis_answer_replicas(answer));
    memcpy(store->server, event.reply.server, sizeof store->server);
    watch_clock(store, &event.reply);
    if (event.reply.outcome == OUTCOME_YES && event.type != STORE_RELEASED &&
        store->replicas.wanted > 0) {
        store->pending[op].held = event;
        return REDIS_LINK_HELD;
    }
    deliver(store, &event);
    return REDIS_LINK_TAKEN;
}

static void on_confirmed(void *context, size_t op) {
    struct redis_store *store = context;
    struct store_event event = store->pending[op].held;
    deliver(store, &event);
}

static void on_doubt(void *context, size_t op, struct instant sent, enum election_reason reason,
                     const char *text) {
    struct redis_store *store = context;
    struct store_event event = {.type = store->pending[op].type, .election = op};
    event.reply.outcome = OUTCOME_UNSURE;
    event.reply.reason = reason;
    event.reply.sent = sent;
    event.reply.expires_in_ns = -1;
    snprintf(event.text, sizeof event.text, "%s", text);
    store->setup.status->up = false;
    set_problem(store, reason == REASON_STORE_REFUSED ? op : store->setup.election_count, text);
    store->setup.on_event(store->setup.context, &event);
}

static void on_opened(void *context) {
    struct redis_store *store = context;
    const struct redis_gate *gate = &store->link.route.gate;
    struct store_status *status = store->setup.status;
    if (store->connected_before) {
        status->reconnects++;
    }
    store->connected_before = true;
    snprintf(status->version, sizeof status->version, "%s", gate->handshake.version);
    uint64_t suppressed = 0; /* a server that talks nonsense is connected to again and again */
    if (log_allow(&store->opened_limit, OPENED_EVERY_MS, &suppressed)) {
        log_event(LOG_INFO, "store-connected", LOG_TEXT("address", gate->where),
                  LOG_TEXT("version", status->version),
                  LOG_NUMBER("reconnects", status->reconnects),
                  LOG_NUMBER("suppressed", suppressed));
    }
    if (redis_master_has_moved(&store->subscriber.route.master, &store->link.route.master)) {
        redis_subscriber_move(&store->subscriber);
    } else {
        redis_subscriber_kick(&store->subscriber, 0);
    }
}

/* A Sentinel has said where the master is. */
static void on_told(void *context, const struct redis_master *master, size_t teller) {
    struct redis_store *store = context;
    char why[REDIS_GATE_TEXT];
    redis_sentinels_learn(&store->sentinels, master);
    bool listening_elsewhere = redis_master_has_moved(&store->subscriber.route.master, master);
    if (redis_master_has_moved(&store->link.route.master, master)) {
        store->sentinels.first = teller; /* the others may not know of it yet */
        snprintf(why, sizeof why, "the Sentinels have made %.80s:%u the master", master->host,
                 (unsigned)master->port);
        redis_link_move(&store->link, why);
    }
    if (listening_elsewhere && !store->lives.closing) {
        redis_subscriber_move(&store->subscriber);
    }
}

static void on_trouble(void *context, const char *text) {
    struct redis_store *store = context;
    store->setup.status->up = false;
    set_problem(store, store->setup.election_count, text);
}

static void on_release(void *context, size_t election, bool clean) {
    struct redis_store *store = context;
    struct store_event event = {.type = STORE_WAKE, .election = election, .clean = clean};
    store->setup.on_event(store->setup.context, &event);
}

static void on_settled(void *context) {
    struct redis_store *store = context;
    redis_link_unhold(&store->link);
}

static void submit(struct store *base, enum store_event_type type,
                   const struct store_request *request) {
    struct redis_store *store = of(base);
    store->pending[request->election] = (struct pending){.type = type, .request = *request};
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
        snprintf(text, size, "%.*s/%u/%s", (int)run_id, store->server, store->url.database,
                 store->names[election].space);
    }
}

/* All handles are gone. */
static void on_empty(void *context) {
    struct redis_store *store = context;
    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;
    redis_link_finish(&store->link);
    free(store->names);
    free(store->pending);
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

static bool init_names(struct redis_store *store, struct error *error) {
    const struct store_setup *setup = &store->setup;
    store->names = memory_zeroed(setup->election_count, sizeof *store->names);
    for (size_t i = 0; i < setup->election_count; i++) {
        if (!redis_names_init(&store->names[i], setup->namespace_, setup->elections[i])) {
            error_set(error, "namespace and election \"%.40s\" are too long for a key",
                      setup->elections[i]);
            return false;
        }
    }
    return true;
}

static void init_connections(struct redis_store *store) {
    const struct store_setup *setup = &store->setup;
    int64_t backoff_ns = setup->ttl_ns / 10;
    backoff_ns = backoff_ns < BACKOFF_LEAST_NS ? BACKOFF_LEAST_NS : backoff_ns;
    store->lives.empty = on_empty;
    store->lives.context = store;
    redis_resolver_init(&store->resolver, setup->loop, &store->lives, store->url.host,
                        store->url.port);
    struct redis_sentinels *sentinels = store->url.sentinel ? &store->sentinels : NULL;
    if (sentinels != NULL) {
        redis_sentinels_init(sentinels, &store->url, setup->loop, &store->lives);
    }
    struct redis_gate_setup gate = {.loop = setup->loop,
                                    .url = &store->url,
                                    .secrets = setup->secrets,
                                    .tls = store->tls,
                                    .resolver = &store->resolver,
                                    .lives = &store->lives};
    struct redis_link_setup link = {.gate = gate,
                                    .sentinels = sentinels,
                                    .replicas = setup->wait_replicas,
                                    .op_count = setup->election_count,
                                    .backoff_most_ns =
                                        backoff_ns < BACKOFF_MOST_NS ? backoff_ns : BACKOFF_MOST_NS,
                                    .request = on_request,
                                    .answer = on_answer,
                                    .confirmed = on_confirmed,
                                    .doubt = on_doubt,
                                    .opened = on_opened,
                                    .trouble = on_trouble,
                                    .context = store};
    struct redis_subscriber_setup subscriber = {.gate = gate,
                                                .sentinels = sentinels,
                                                .names = store->names,
                                                .count = setup->election_count,
                                                .on_release = on_release,
                                                .settled = on_settled,
                                                .context = store};
    redis_link_init(&store->link, &link);
    redis_subscriber_init(&store->subscriber, &subscriber);
    if (sentinels != NULL) {
        struct redis_watcher_setup watcher = {
            .gate = gate, .sentinels = sentinels, .told = on_told, .context = store};
        redis_watcher_init(&store->watcher, &watcher);
    }
}

static struct store *redis_open(const struct store_setup *setup, struct error *error) {
    struct redis_store *store = memory_zeroed(1, sizeof *store);
    store->base.ops = &redis_store_ops;
    store->setup = *setup;
    store->troubled = setup->election_count;
    store->replicas.wanted = setup->wait_replicas;
    if (!redis_url_parse(setup->url, &store->url, error) || !init_names(store, error) ||
        !init_tls(store, error)) {
        free(store->names);
        explicit_bzero(&store->url, sizeof store->url);
        free(store);
        return NULL;
    }
    store->pending = memory_zeroed(setup->election_count, sizeof *store->pending);
    init_connections(store);
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
