#include "store/redlock/inside.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* A timer that comes later than this was held up, and so were the answers. */
#define LATE_NS (20 * NS_PER_MS)

static void issue(struct redlock_store *store, size_t election, const struct round_request *asked) {
    struct store *node = store->nodes[asked->node].store;
    struct store_request request = {.election = election,
                                    .seen_token = asked->ask.seen_token,
                                    .wait_ns = asked->ask.wait_ns,
                                    .take = asked->ask.take,
                                    .raise_token = asked->ask.raise_token,
                                    .clean = asked->ask.clean,
                                    .token = asked->ask.token,
                                    .timeout_ns = asked->ask.timeout_ns};
    memcpy(request.nonce, asked->ask.nonce, NONCE_BYTES);
    memcpy(request.server, asked->server, SERVER_ID_MAX);
    if (asked->ask.op == OP_ACQUIRE) {
        node->ops->acquire(node, &request);
    } else if (asked->ask.op == OP_RENEW) {
        node->ops->renew(node, &request);
    } else {
        node->ops->release(node, &request);
    }
}

/* Why an operation ended as it did, for people. */
static void explain(const struct redlock_store *store, const struct redlock_election *election,
                    struct store_event *event) {
    const struct round *round = &election->round;
    size_t heard = 0;
    for (size_t i = 0; i < store->list.count; i++) {
        heard += round_heard(round, i) ? 1 : 0;
    }
    if (round->clash) {
        snprintf(event->text, sizeof event->text,
                 "a lease stands under a list of nodes that differs from ours by more than one: "
                 "change the list one node at a time");
    } else if (round->one_server) {
        snprintf(event->text, sizeof event->text,
                 "nodes are one server under several names, or do not say who they are (INFO is "
                 "denied): too few servers are left for a majority");
    } else if (event->reply.outcome == OUTCOME_UNSURE) {
        bool told = round->blamed < store->list.count;
        const struct redlock_node *node = &store->nodes[told ? round->blamed : 0];
        snprintf(event->text, sizeof event->text, "%zu of %zu nodes answer%s%.60s%s%.70s", heard,
                 store->list.count, told ? "; " : ", and no majority agrees",
                 told ? store->list.names[round->blamed] : "", told ? ": " : "",
                 told ? node->text : "");
    } else if (event->reply.reason == REASON_FOREIGN_VALUE) {
        char space[REDIS_NAME_SIZE];
        redis_names_space(space, sizeof space, store->setup.namespace_,
                          store->setup.elections[event->election]);
        snprintf(event->text, sizeof event->text,
                 "a majority of nodes is needed, and %.74s:lease holds a value that gavel did not "
                 "write",
                 space);
    }
}

void redlock_drive(struct redlock_store *store, size_t index) {
    struct redlock_election *election = &store->elections[index];
    struct round_request request;
    struct store_event event;
    do {
        while (round_next(&election->round, clock_now().boot_ns, &request)) {
            issue(store, index, &request);
        }
        memset(&event, 0, sizeof event);
        if (!round_take(&election->round, &event.reply)) {
            break;
        }
        event.type = election->type;
        event.election = index;
        explain(store, election, &event);
        redlock_show(store, event.reply.outcome != OUTCOME_UNSURE, event.text);
        store->setup.on_event(store->setup.context, &event); /* may ask anew, or close */
    } while (!store->closing);
    redlock_arm(store);
}

static void on_wake(struct redlock_store *store, size_t node, const struct store_event *event) {
    struct round *round = &store->elections[event->election].round;
    struct store_event wake = *event;
    bool tries = round_told(round, node, event->nonce, &wake.clean);
    redlock_drive(store, event->election);
    if (tries && !store->closing) {
        store->setup.on_event(store->setup.context, &wake);
    }
}

void redlock_on_event(void *context, const struct store_event *event) {
    struct redlock_node *node = context;
    struct redlock_store *store = node->owner;
    if (store->closing || event->type == STORE_LOST) {
        return;
    }
    if (event->type == STORE_WAKE) {
        on_wake(store, node->index, event);
        return;
    }
    if (event->reply.outcome == OUTCOME_UNSURE) {
        memcpy(node->text, event->text, sizeof node->text);
    }
    static const enum round_lists lists[] = {LISTS_SAME, LISTS_ONE_APART, LISTS_FURTHER_APART,
                                             LISTS_RUN_OUT};
    round_answered(&store->elections[event->election].round, node->index, &event->reply,
                   lists[event->lists_apart & 3], clock_now().boot_ns);
    redlock_drive(store, event->election);
}

static int64_t earliest_ns(const struct redlock_store *store, int64_t now_ns) {
    int64_t at_ns = NEVER_NS;
    for (size_t i = 0; i < store->setup.election_count; i++) {
        int64_t wake_ns = round_wake_ns(&store->elections[i].round, now_ns);
        at_ns = wake_ns < at_ns ? wake_ns : at_ns;
    }
    return at_ns;
}

static void on_timer(uv_timer_t *timer) {
    struct redlock_store *store = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    for (size_t i = 0; i < store->setup.election_count && !store->closing; i++) {
        round_tick(&store->elections[i].round, now_ns);
        redlock_drive(store, i);
    }
    if (!store->closing) {
        redlock_arm(store);
    }
}

static void on_timer_first(uv_timer_t *timer) {
    struct redlock_store *store = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    if (!store->late && store->armed_ns < now_ns - LATE_NS) {
        store->late = true;
        (void)uv_timer_start(&store->timer, on_timer_first, 1, 0);
        return;
    }
    store->late = false;
    on_timer(timer);
}

void redlock_arm(struct redlock_store *store) {
    int64_t now_ns = clock_now().boot_ns;
    if (store->closing) {
        return;
    }
    int64_t at_ns = earliest_ns(store, now_ns);
    store->armed_ns = at_ns;
    if (at_ns == NEVER_NS) {
        (void)uv_timer_stop(&store->timer);
        return;
    }
    int64_t left_ns = at_ns - now_ns;
    uv_update_time(store->setup.loop);
    (void)uv_timer_start(&store->timer, on_timer_first,
                         left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
}
