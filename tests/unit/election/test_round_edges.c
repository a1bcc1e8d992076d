#include "round_table.h"

#include "election/election.h"

/* Where numbers and names end. */

static void no_token_above_the_largest_is_written(void **state) {
    (void)state;
    struct table table = laid(3);
    table.nonce++;
    start(&table, OP_ACQUIRE, (struct round_ask){.take = true, .seen_token = TOKEN_MAX});
    for (size_t i = 0; i < 3; i++) {
        answer(&table, i, yes(90, PRIOR_CLEAN));
    }
    struct store_reply reply = told(&table);
    assert_int_not_equal(reply.outcome, OUTCOME_YES);
    for (size_t i = 0; i < 3; i++) { /* nothing is left behind */
        assert_int_equal(table.asked[i].ask.op, OP_RELEASE);
    }
}

static void a_raise_above_the_largest_is_in_doubt_and_the_grant_stays(void **state) {
    (void)state;
    struct table table = leading();
    struct round_ask ask = {.raise_token = true, .seen_token = TOKEN_MAX};
    start(&table, OP_RENEW, ask);
    for (size_t i = 0; i < 3; i++) {
        answer(&table, i, yes(95, PRIOR_NONE));
    }
    assert_int_equal(told(&table).outcome, OUTCOME_UNSURE);
    table.now_ns += 1 * S;
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, yes(95, PRIOR_NONE));
    answer(&table, 1, yes(95, PRIOR_NONE));
    assert_int_not_equal(told(&table).outcome, OUTCOME_NO);
}

/* The lease that a node keeps is longer than what is counted on by a margin. */
static void nodes_that_come_back_within_the_margin_do_not_count_at_once(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct table table = leading();
        table.now_ns = 1000 * S + TTL - MARGIN + (late ? 1 : -1) * MARGIN / 2;
        start(&table, OP_RENEW, (struct round_ask){.take = false});
        for (size_t i = 0; i < 3 && table.asked[i].ask.op != OP_NONE; i++) {
            answer(&table, i, yes(90, PRIOR_NONE));
        }
        assert_int_equal(told(&table).outcome, late ? OUTCOME_UNSURE : OUTCOME_YES);
    }
}

static void a_token_that_was_seen_is_surpassed(void **state) {
    (void)state;
    struct table table = laid(3);
    table.nonce++;
    start(&table, OP_ACQUIRE, (struct round_ask){.take = true, .seen_token = 200});
    for (size_t i = 0; i < 3; i++) {
        answer(&table, i, yes(90, PRIOR_CLEAN));
    }
    assert_true(table.asked[0].ask.token == 201 && table.asked[1].ask.token == 201);
}

static void a_longer_ttl_on_any_node_is_waited_for(void **state) {
    (void)state;
    struct table table = laid(3);
    struct store_reply longer = yes(90, PRIOR_NONE);
    longer.longest_ttl_ns = 3 * TTL;
    acquire(&table);
    answer(&table, 0, longer);
    answer(&table, 1, yes(90, PRIOR_NONE));
    answer(&table, 2, silence);
    struct store_reply reply = told(&table);
    assert_true(reply.longest_ttl_ns == 3 * TTL);
    assert_true(reply.wait_until_ns >= 1000 * S + 3 * TTL);
}

static void nodes_without_names_are_the_same_only_as_long_as_nobody_says_more(void **state) {
    (void)state;
    struct quorum quorum;
    const unsigned char nonce[NONCE_BYTES] = {1};
    struct store_reply nameless = {.outcome = OUTCOME_YES, .token = 9};
    nameless.sent.boot_ns = 1 * S;
    quorum_init(&quorum, 3, TTL - MARGIN, nonce);
    quorum_granted(&quorum, 0, &nameless, DOUBT_NONE, 1 * S);
    nameless.sent.boot_ns = 2 * S;
    quorum_renewed(&quorum, 0, &nameless, 2 * S);
    assert_true(quorum_counts(&quorum.nodes[0], TTL)); /* it goes on */
    nameless.server[0] = 'x';
    nameless.sent.boot_ns = 3 * S;
    quorum_renewed(&quorum, 0, &nameless, 3 * S);
    assert_false(quorum_counts(&quorum.nodes[0], TTL)); /* that is somebody else */
    nameless.token = 8;
    nameless.sent.boot_ns = 4 * S;
    quorum_renewed(&quorum, 0, &nameless, 4 * S); /* older data begins anew, too */
    assert_true(quorum.nodes[0].granted_ns == 4 * S);
}

static void names_that_fill_their_place_are_compared_to_their_end(void **state) {
    (void)state;
    char full[SERVER_ID_MAX];
    char other[SERVER_ID_MAX];
    memset(full, 'r', sizeof full);
    full[SERVER_ID_MAX - 1] = '\0';
    memcpy(other, full, sizeof other);
    assert_true(server_is_same(full, other));
    other[SERVER_ID_MAX - 2] = 's';
    assert_false(server_is_same(full, other));
    struct vouch vouch = {.first_ns = 0};
    struct vouch_sample sample = {
        .server = full, .server_now_us = 7, .sent_ns = 1 * S, .arrived_ns = 1 * S + 1 * MS};
    vouch_add(&vouch, &sample, MARGIN, TTL);
    assert_true(server_is_same(vouch.server, full));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_token_above_the_largest_is_written),
        cmocka_unit_test(a_raise_above_the_largest_is_in_doubt_and_the_grant_stays),
        cmocka_unit_test(nodes_that_come_back_within_the_margin_do_not_count_at_once),
        cmocka_unit_test(a_token_that_was_seen_is_surpassed),
        cmocka_unit_test(a_longer_ttl_on_any_node_is_waited_for),
        cmocka_unit_test(nodes_without_names_are_the_same_only_as_long_as_nobody_says_more),
        cmocka_unit_test(names_that_fill_their_place_are_compared_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
