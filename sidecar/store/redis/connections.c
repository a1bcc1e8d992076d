#include "store/redis/redis_inside.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/redis/answer.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <string.h>

#define BACKOFF_LEAST_NS (50 * NS_PER_MS)
#define BACKOFF_MOST_NS (900 * NS_PER_MS)
#define LOG_EVERY_MS 10000
#define OPENED_EVERY_MS 1000
#define MOVE_PAUSE_NS NS_PER_S /* a Sentinel that repeats itself must not keep us moving */

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
    const struct redis_pending *pending = &store->pending[op];
    struct redis_names names;
    (void)redis_names_init(&names, store->setup.namespace_, store->setup.elections[op]); /* fits */
    return redis_command_script(pending->type, &store->setup, &pending->request, &names, body);
}

/* What people have to know of an answer that is right in itself. */
static void note_strange(struct redis_store *store, size_t op, struct store_event *event) {
    bool no = event->reply.outcome == OUTCOME_NO;
    bool foreign = no && event->reply.reason == REASON_FOREIGN_VALUE;
    bool listed = no && event->reply.reason == REASON_STORE_REFUSED;
    if (foreign || listed) {
        char space[REDIS_NAME_SIZE];
        redis_names_space(space, sizeof space, store->setup.namespace_, store->setup.elections[op]);
        snprintf(event->text, sizeof event->text,
                 foreign ? "%.94s:lease holds a value that gavel did not write"
                         : "a node of redlock: end its replicas, wait W, then delete the field "
                           "list of %.60s:record",
                 space);
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
    note_strange(store, event->election, event);
    store->setup.on_event(store->setup.context, event);
}

/* A grant that no replica has acknowledged leaves an end in the record too, while another may be
 * acknowledged elsewhere: where acknowledgements count, only the clean mark proves anything. */
static void distrust_end(struct store_reply *reply) {
    if (reply->prior == PRIOR_END) {
        reply->prior = PRIOR_NONE;
        reply->doubt = DOUBT_UNCLEAN;
    }
}

static enum redis_link_taken on_answer(void *context, size_t op, struct instant sent,
                                       const redisReply *reply) {
    struct redis_store *store = context;
    struct store_event event = {.type = store->pending[op].type, .election = op};
    redisReply head = *reply;
    const redisReply *answer = &head;
    if (store->setup.node_list != NULL && event.type != STORE_RELEASED &&
        !redis_answer_take_list(&head, &event.lists_apart)) {
        return REDIS_LINK_STRANGE;
    }
    if (!redis_answer_read(answer, event.type, &event.reply)) {
        return REDIS_LINK_STRANGE;
    }
    event.reply.sent = sent;
    event.reply.warnings &= ~(uint32_t)WARNING_STORE_REPLICATED_ASYNC; /* depends on more */
    redis_replicas_heard(&store->replicas, store->sentinels.replicas);
    event.reply.warnings |=
        store->link.warnings |
        redis_replicas_warnings(&store->replicas, redis_answer_replicas(answer));
    event.reply.safety = redis_replicas_safety(&store->replicas);
    memcpy(store->server, event.reply.server, sizeof store->server);
    watch_clock(store, &event.reply);
    if (event.reply.outcome == OUTCOME_YES && event.type != STORE_RELEASED &&
        store->replicas.wanted > 0) {
        distrust_end(&event.reply);
        store->held[op] = event;
        return REDIS_LINK_HELD;
    }
    deliver(store, &event);
    return REDIS_LINK_TAKEN;
}

static void on_confirmed(void *context, size_t op) {
    struct redis_store *store = context;
    struct store_event event = store->held[op];
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

/* Whether all Sentinels, one after the other, say that another server is the master. Then it is,
 * whatever the epochs are: they were made anew, or do not tell. */
static bool all_say_so(struct redis_store *store, const struct redis_master *master,
                       size_t teller) {
    if (redis_master_is_same(&store->link.route.master, master) || master->port == 0) {
        store->elsewhere_tellers = 0;
        return false;
    }
    if (!redis_master_is_same(&store->elsewhere, master)) {
        store->elsewhere = *master;
        store->elsewhere_tellers = 0;
    }
    store->elsewhere_tellers |= UINT32_C(1) << teller;
    return store->elsewhere_tellers == (UINT32_C(1) << store->url.sentinel_count) - 1;
}

/* A Sentinel has said where the master is. One that is asked may not have heard of the last
 * failover: it has to know of a later one, or all have to agree. */
static void on_told(void *context, const struct redis_master *master, size_t teller, bool asked) {
    struct redis_store *store = context;
    const struct redis_master *used = &store->link.route.master;
    char why[REDIS_GATE_TEXT];
    redis_sentinels_learn(&store->sentinels, master);
    bool agreed = asked && used->port != 0 && all_say_so(store, master, teller);
    bool later = redis_master_has_moved(used, master) &&
                 (!asked || (used->epoch_known && master->epoch_known));
    int64_t now_ns = clock_now().boot_ns;
    bool paused = store->moved_ns != 0 && now_ns - store->moved_ns < MOVE_PAUSE_NS;
    if ((later || agreed) && !paused) {
        store->moved_ns = now_ns;
        store->elsewhere_tellers = 0;
        store->sentinels.first = teller; /* the others may not know of it yet */
        snprintf(why, sizeof why, "the Sentinels have made %.80s:%u the master", master->host,
                 (unsigned)master->port);
        redis_link_move(&store->link, why);
    } else if (redis_master_is_same(used, master) &&
               redis_master_has_moved(&store->subscriber.route.master, master)) {
        redis_subscriber_move(&store->subscriber);
    }
}

static void on_trouble(void *context, const char *text) {
    struct redis_store *store = context;
    store->setup.status->up = false;
    set_problem(store, store->setup.election_count, text);
}

static void on_release(void *context, size_t election, const struct redis_release *release) {
    struct redis_store *store = context;
    struct store_event event = {.type = STORE_WAKE, .election = election, .clean = release->clean};
    memcpy(event.nonce, release->nonce, NONCE_BYTES);
    store->setup.on_event(store->setup.context, &event);
}

static void on_settled(void *context) {
    struct redis_store *store = context;
    redis_link_unhold(&store->link);
}

void redis_connections_init(struct redis_store *store) {
    const struct store_setup *setup = &store->setup;
    int64_t backoff_ns = setup->ttl_ns / 10;
    backoff_ns = backoff_ns < BACKOFF_LEAST_NS ? BACKOFF_LEAST_NS : backoff_ns;
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
                                                .namespace_ = setup->namespace_,
                                                .elections = setup->elections,
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
