#ifndef GAVEL_TESTS_UNIT_ELECTION_ROUND_TABLE_H
#define GAVEL_TESTS_UNIT_ELECTION_ROUND_TABLE_H

/* Plays the nodes of a round by hand: what they are asked lies on the table until it is answered.
 * The caller's memory, nothing to free; times are nanoseconds. */

#include "election/round.h"

#include "driver.h"

#include <string.h>

#define TTL (10 * S)
#define MARGIN (2 * S)
#define ATTEMPT (1500 * MS)

/* Five nodes, answered by hand. */
struct table {
    struct round round;
    int64_t now_ns;
    struct round_request asked[QUORUM_NODES_MAX]; /* op OP_NONE: nothing is asked */
    unsigned char nonce;
};

static inline void take_requests(struct table *table) {
    struct round_request request;
    while (round_next(&table->round, table->now_ns, &request)) {
        assert_int_equal(table->asked[request.node].ask.op, OP_NONE); /* one at a time */
        table->asked[request.node] = request;
    }
}

static inline struct table laid(size_t count) {
    struct table table;
    struct round_config config = {.node_count = count, .ttl_ns = TTL, .margin_ns = MARGIN};
    memset(&table, 0, sizeof table);
    table.now_ns = 1000 * S;
    round_init(&table.round, &config);
    return table;
}

static inline void start(struct table *table, enum election_op op, struct round_ask ask) {
    ask.op = op;
    ask.wait_ns = TTL;
    ask.timeout_ns = ATTEMPT;
    ask.nonce[0] = table->nonce;
    round_start(&table->round, &ask, table->now_ns);
    take_requests(table);
}

static inline void acquire(struct table *table) {
    table->nonce++;
    start(table, OP_ACQUIRE, (struct round_ask){.take = true});
}

static inline void answer_listed(struct table *table, size_t node, struct store_reply reply,
                                 enum round_lists lists) {
    assert_int_not_equal(table->asked[node].ask.op, OP_NONE);
    reply.sent.boot_ns = table->now_ns;
    reply.server[0] = (char)('a' + node);
    reply.server_now_us = table->now_ns / NS_PER_US;
    table->asked[node].ask.op = OP_NONE;
    table->now_ns += 1 * MS;
    round_answered(&table->round, node, &reply, lists, table->now_ns);
    take_requests(table);
}

static inline void answer(struct table *table, size_t node, struct store_reply reply) {
    answer_listed(table, node, reply, LISTS_SAME);
}

static inline struct store_reply yes(uint64_t token, enum prior prior) {
    return (struct store_reply){.outcome = OUTCOME_YES,
                                .token = token,
                                .prior = prior,
                                .doubt = prior == PRIOR_NONE ? DOUBT_NO_RECORD : DOUBT_NONE};
}

static inline struct store_reply held_by(unsigned char nonce) {
    struct store_reply reply = {.outcome = OUTCOME_NO,
                                .reason = REASON_HELD_BY_OTHER,
                                .held = true,
                                .holder_nonce_known = true,
                                .expires_in_ns = 3 * S,
                                .token = 50};
    reply.holder_nonce[0] = nonce;
    return reply;
}

static const struct store_reply missing = {
    .outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED, .expires_in_ns = -1};
static const struct store_reply silence = {.outcome = OUTCOME_UNSURE,
                                           .reason = REASON_STORE_UNREACHABLE};

static inline struct store_reply told(struct table *table) {
    struct store_reply reply;
    assert_true(round_take(&table->round, &reply));
    return reply;
}

static inline bool is_silent(struct table *table) {
    struct store_reply reply;
    return !round_take(&table->round, &reply);
}

/* Time goes by until the round itself does something. */
static inline void wait_for_it(struct table *table) {
    int64_t wake_ns = round_wake_ns(&table->round, table->now_ns);
    assert_true(wake_ns > table->now_ns && wake_ns != NEVER_NS);
    table->now_ns = wake_ns;
    round_tick(&table->round, table->now_ns);
    take_requests(table);
}

static inline struct table leading(void) {
    struct table table = laid(3);
    acquire(&table);
    for (size_t i = 0; i < 2; i++) {
        answer(&table, i, yes(90, PRIOR_CLEAN));
    }
    wait_for_it(&table);
    assert_int_equal(told(&table).prior, PRIOR_CLEAN);
    answer(&table, 2, yes(95, PRIOR_CLEAN)); /* late, and no matter */
    table.now_ns += 3 * S;
    return table;
}

#endif
