#include "round_table.h"

static void a_clean_majority_decides_and_its_token_is_written_back(void **state) {
    (void)state;
    struct table table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(70, PRIOR_CLEAN));
    answer(&table, 1, yes(90, PRIOR_CLEAN));
    assert_true(is_silent(&table));
    answer(&table, 2, yes(80, PRIOR_CLEAN));
    assert_int_equal(table.asked[0].ask.op, OP_NONE); /* the others may object */
    wait_for_it(&table);
    assert_true(table.now_ns < 1000 * S + 50 * MS); /* they have not long for it */
    assert_true(is_silent(&table));                 /* 90 stands on one node alone */
    assert_int_equal(table.asked[0].ask.op, OP_RENEW);
    assert_true(table.asked[0].ask.token == 90 && table.asked[2].ask.token == 90);
    answer(&table, 0, yes(90, PRIOR_NONE));
    assert_true(is_silent(&table));
    answer(&table, 2, yes(90, PRIOR_NONE));
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_int_equal(reply.prior, PRIOR_CLEAN);
    assert_true(reply.token == 90 && reply.wait_until_ns == 0);
}

static void a_forgetful_node_makes_it_wait(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer(&table, 1, yes(90, PRIOR_NONE));
    assert_true(is_silent(&table)); /* the third may prove something */
    answer(&table, 2, silence);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_int_equal(reply.prior, PRIOR_NONE);
    assert_int_equal(reply.doubt, DOUBT_NO_RECORD);
    assert_true(reply.wait_until_ns >= 1000 * S + TTL);
}

static void slow_nodes_are_waited_for_no_longer_than_patience(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_NONE));
    answer(&table, 1, yes(90, PRIOR_NONE));
    int64_t wake_ns = round_wake_ns(&table.round, table.now_ns);
    assert_true(wake_ns <= 1000 * S + ATTEMPT / 3);
    table.now_ns = wake_ns;
    round_tick(&table.round, table.now_ns);
    take_requests(&table);
    if (is_silent(&table)) { /* the token is written already: nothing is left but to say so */
        table.now_ns = round_wake_ns(&table.round, table.now_ns);
        round_tick(&table.round, table.now_ns);
        assert_int_equal(told(&table).outcome, OUTCOME_YES);
    }
}

static void a_lost_round_is_given_back_but_where_it_was_refused(void **state) {
    (void)state;
    struct table table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, held_by(99));
    answer(&table, 2, held_by(99));
    assert_true(is_silent(&table)); /* a majority can be had still */
    answer(&table, 3, silence);     /* it may have given the lock */
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_true(reply.held && reply.holder_nonce[0] == 99);
    assert_int_equal(table.asked[0].ask.op, OP_RELEASE);
    assert_true(table.asked[0].ask.clean); /* what was proved there stays proved */
    assert_int_equal(table.asked[3].ask.op, OP_RELEASE);
    assert_false(table.asked[3].ask.clean);
    assert_int_equal(table.asked[1].ask.op, OP_NONE);
}

static void a_nonce_that_goes_on_gets_no_mark(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, silence);
    answer(&table, 2, silence);
    assert_int_equal(told(&table).outcome, OUTCOME_UNSURE);
    assert_int_equal(table.asked[0].ask.op, OP_RELEASE);
    assert_false(table.asked[0].ask.clean); /* it may come after the retry */
}

static void a_late_yes_is_given_back(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, held_by(99));
    answer(&table, 1, held_by(99));
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
    answer(&table, 2, yes(60, PRIOR_CLEAN));
    assert_int_equal(table.asked[2].ask.op, OP_RELEASE);
    assert_true(table.asked[2].ask.clean && table.asked[2].ask.token == 60);

    table = laid(3);
    acquire(&table);
    answer(&table, 0, held_by(99));
    answer(&table, 1, held_by(99));
    answer(&table, 2, yes(60, PRIOR_NONE));
    assert_int_equal(table.asked[2].ask.op, OP_RELEASE);
    assert_false(table.asked[2].ask.clean); /* it proved nothing */
}

static void a_late_yes_to_a_grant_that_led_gets_no_mark(void **state) {
    (void)state;
    struct table table = leading();
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 1, missing);
    answer(&table, 0, yes(90, PRIOR_NONE));
    answer(&table, 2, yes(95, PRIOR_NONE));
    assert_int_equal(told(&table).outcome, OUTCOME_YES);
    assert_int_equal(table.asked[1].ask.op, OP_ACQUIRE); /* the repair, which takes its time */
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, held_by(99));
    answer(&table, 2, held_by(99));
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
    answer(&table, 1, yes(90, PRIOR_CLEAN));
    assert_int_equal(table.asked[1].ask.op, OP_RELEASE);
    assert_false(table.asked[1].ask.clean); /* an application may trust what it was told yet */
}

static void renewals_carry_the_token_and_make_missing_keys_anew(void **state) {
    (void)state;
    struct table table = leading();
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    assert_true(table.asked[0].ask.token == 90 && !table.asked[0].ask.raise_token);
    answer(&table, 1, missing);
    answer(&table, 0, yes(90, PRIOR_NONE));
    assert_true(is_silent(&table));
    answer(&table, 2, yes(95, PRIOR_NONE));
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_true(reply.token == 90);
    assert_int_equal(table.asked[1].ask.op, OP_ACQUIRE);
    assert_true(table.asked[1].ask.token == 90); /* with the same token */
    answer(&table, 1, yes(90, PRIOR_NONE));
    /* That node has no vote yet: without node 2 nothing of this renewal is a majority's. */
    table.now_ns += 3 * S;
    int64_t began_ns = table.now_ns;
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, yes(90, PRIOR_NONE));
    answer(&table, 1, yes(90, PRIOR_NONE));
    assert_true(is_silent(&table));
    answer(&table, 2, silence);
    assert_true(told(&table).sent.boot_ns < began_ns);
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, yes(90, PRIOR_NONE));
    answer(&table, 1, yes(90, PRIOR_NONE));
    answer(&table, 2, silence);
    assert_int_equal(told(&table).outcome, OUTCOME_UNSURE);
}

static void a_majority_of_nos_ends_it_at_once(void **state) {
    (void)state;
    struct table table = leading();
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 1, missing);
    assert_true(is_silent(&table));
    struct store_reply others = held_by(99);
    others.reason = REASON_RENEWAL_REFUSED;
    answer(&table, 2, others);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_int_equal(reply.reason, REASON_RENEWAL_REFUSED);
}

static void a_raise_reads_all_records_that_can_be_reached(void **state) {
    (void)state;
    struct table table = leading();
    start(&table, OP_RENEW, (struct round_ask){.raise_token = true});
    answer(&table, 0, yes(120, PRIOR_NONE));
    answer(&table, 1, yes(110, PRIOR_NONE));
    assert_true(is_silent(&table));
    struct store_reply other = missing;
    other.token = 300; /* somebody's token that only this node remembers */
    answer(&table, 2, other);
    assert_true(table.asked[0].ask.token == 301 && table.asked[1].ask.token == 301);
    answer(&table, 0, yes(301, PRIOR_NONE));
    answer(&table, 1, yes(301, PRIOR_NONE));
    assert_true(told(&table).token == 301);
}

static void a_key_that_came_back_with_another_token_is_a_new_grant(void **state) {
    (void)state;
    struct table table = leading();
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, yes(150, PRIOR_NONE)); /* nobody asked for that token */
    answer(&table, 1, yes(150, PRIOR_NONE));
    assert_true(is_silent(&table));
    answer(&table, 2, silence);
    assert_int_equal(told(&table).outcome, OUTCOME_UNSURE);

    table = leading();
    start(&table, OP_RENEW, (struct round_ask){.raise_token = true});
    for (size_t i = 0; i < 3; i++) {
        answer(&table, i, silence);
    }
    assert_int_equal(told(&table).outcome, OUTCOME_UNSURE);
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer(&table, 0, yes(150, PRIOR_NONE)); /* of the raise, whose answer was lost */
    answer(&table, 1, yes(150, PRIOR_NONE));
    assert_int_equal(told(&table).outcome, OUTCOME_YES);
}

static void half_of_four_refuses_and_is_warned_of(void **state) {
    (void)state;
    struct table table = laid(4);
    acquire(&table);
    answer(&table, 0, held_by(99));
    answer(&table, 1, held_by(99));
    assert_true(is_silent(&table)); /* a third one will tell who holds the lock */
    answer(&table, 2, held_by(99));
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_true(reply.holder_nonce_known && reply.expires_in_ns > S);
    assert_true((reply.warnings & WARNING_EVEN_NODES) != 0);

    table = laid(4); /* and two are silent */
    acquire(&table);
    answer(&table, 0, held_by(99));
    answer(&table, 1, held_by(99));
    wait_for_it(&table);
    assert_true(table.now_ns < 1000 * S + ATTEMPT);
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
}

static void a_late_yes_keeps_its_proof_when_the_next_attempt_has_begun(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, held_by(99));
    answer(&table, 1, held_by(99));
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
    acquire(&table);
    answer(&table, 2, yes(60, PRIOR_CLEAN)); /* of the first */
    assert_int_equal(table.asked[2].ask.op, OP_RELEASE);
    assert_true(table.asked[2].ask.clean && table.asked[2].ask.token == 60);
}

static void renew_without_node_1(struct table *table) {
    start(table, OP_RENEW, (struct round_ask){.take = false});
    answer(table, 0, yes(90, PRIOR_NONE));
    answer(table, 2, yes(95, PRIOR_NONE));
    assert_int_equal(told(table).outcome, OUTCOME_YES);
}

static void nothing_is_repaired_while_it_is_given_back(void **state) {
    (void)state;
    struct table table = leading();
    renew_without_node_1(&table);
    start(&table, OP_RELEASE, (struct round_ask){.clean = true, .token = 90});
    answer(&table, 1, missing); /* to the renewal */
    assert_int_equal(table.asked[1].ask.op, OP_RELEASE);
}

static void a_node_slower_than_the_majority_is_repaired_too(void **state) {
    (void)state;
    struct table table = leading();
    renew_without_node_1(&table);
    answer(&table, 1, missing);
    assert_int_equal(table.asked[1].ask.op, OP_ACQUIRE);
    assert_true(table.asked[1].ask.token == 90);
}

static void a_release_marks_where_the_grant_counts(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer(&table, 1, yes(90, PRIOR_CLEAN));
    wait_for_it(&table);
    (void)told(&table);
    answer(&table, 2, yes(90, PRIOR_NONE)); /* late, and it forgot */
    start(&table, OP_RELEASE, (struct round_ask){.clean = true, .token = 90});
    assert_true(table.asked[0].ask.clean && table.asked[1].ask.clean);
    assert_false(table.asked[2].ask.clean);
}

static void silence_takes_the_whole_time(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    while (is_silent(&table)) {
        table.now_ns = round_wake_ns(&table.round, table.now_ns);
        round_tick(&table.round, table.now_ns);
        assert_true(table.now_ns <= 1000 * S + ATTEMPT + 50 * MS);
    }
    assert_true(table.now_ns >= 1000 * S + ATTEMPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_majority_decides_and_its_token_is_written_back),
        cmocka_unit_test(a_forgetful_node_makes_it_wait),
        cmocka_unit_test(slow_nodes_are_waited_for_no_longer_than_patience),
        cmocka_unit_test(a_lost_round_is_given_back_but_where_it_was_refused),
        cmocka_unit_test(a_nonce_that_goes_on_gets_no_mark),
        cmocka_unit_test(a_late_yes_is_given_back),
        cmocka_unit_test(a_late_yes_to_a_grant_that_led_gets_no_mark),
        cmocka_unit_test(renewals_carry_the_token_and_make_missing_keys_anew),
        cmocka_unit_test(a_majority_of_nos_ends_it_at_once),
        cmocka_unit_test(a_raise_reads_all_records_that_can_be_reached),
        cmocka_unit_test(a_key_that_came_back_with_another_token_is_a_new_grant),
        cmocka_unit_test(half_of_four_refuses_and_is_warned_of),
        cmocka_unit_test(a_late_yes_keeps_its_proof_when_the_next_attempt_has_begun),
        cmocka_unit_test(nothing_is_repaired_while_it_is_given_back),
        cmocka_unit_test(a_node_slower_than_the_majority_is_repaired_too),
        cmocka_unit_test(a_release_marks_where_the_grant_counts),
        cmocka_unit_test(silence_takes_the_whole_time),
    };
    return cmocka_run_group_tests_name("round", tests, NULL, NULL);
}
