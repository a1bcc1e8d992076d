#include "round_table.h"

/* Candidates that come at the same moment. */

static struct store_reply just_held_by(unsigned char nonce) {
    struct store_reply reply = held_by(nonce);
    reply.expires_in_ns = TTL - 10 * MS;
    return reply;
}

static void of_two_that_collide_the_favourite_stays(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table); /* its nonce is the smaller one */
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, held_by(99));
    answer(&table, 2, held_by(98));
    assert_true(is_silent(&table));
    assert_int_equal(table.asked[0].ask.op, OP_NONE); /* nothing is given back */
    table.now_ns = round_wake_ns(&table.round, table.now_ns);
    round_tick(&table.round, table.now_ns);
    take_requests(&table);
    assert_int_equal(table.asked[1].ask.op, OP_ACQUIRE);
    answer(&table, 1, yes(60, PRIOR_CLEAN));
    answer(&table, 2, held_by(98));
    assert_int_equal(told(&table).outcome, OUTCOME_YES);

    table = laid(3);
    table.nonce = 99; /* the next one, 100, is not */
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, held_by(99));
    answer(&table, 2, held_by(98));
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_true(reply.expires_in_ns < S && !reply.holder_nonce_known);
    assert_int_equal(table.asked[0].ask.op, OP_RELEASE);
}

static void rivals_do_not_wait_for_silent_nodes(void **state) {
    (void)state;
    struct table table = laid(5); /* two of which are frozen */
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, yes(60, PRIOR_CLEAN));
    answer(&table, 2, just_held_by(99));
    wait_for_it(&table); /* a moment, which they might use */
    assert_true(table.now_ns < 1000 * S + 50 * MS);
    wait_for_it(&table);
    assert_int_equal(table.asked[2].ask.op, OP_ACQUIRE); /* it has more of them: it asks again */
    answer(&table, 2, yes(60, PRIOR_CLEAN));
    wait_for_it(&table);
    assert_int_equal(told(&table).outcome, OUTCOME_YES);

    table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, just_held_by(99));
    answer(&table, 2, just_held_by(99));
    wait_for_it(&table);
    assert_true(table.now_ns < 1000 * S + 50 * MS);
    assert_int_equal(told(&table).outcome, OUTCOME_NO); /* it has less */
    assert_int_equal(table.asked[0].ask.op, OP_RELEASE);
    assert_true(table.asked[0].ask.clean);
}

static void who_is_gone_is_no_rival(void **state) {
    (void)state;
    struct table table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    struct store_reply gone = held_by(99);
    gone.expires_in_ns = 8 * MS; /* a lease that runs out: the far nodes are free already */
    answer(&table, 1, gone);
    answer(&table, 2, gone);
    table.now_ns += 60 * MS;
    round_tick(&table.round, table.now_ns);
    assert_true(is_silent(&table));
    answer(&table, 3, yes(60, PRIOR_CLEAN));
    answer(&table, 4, yes(60, PRIOR_CLEAN));
    assert_int_equal(told(&table).outcome, OUTCOME_YES);
}

static void a_timer_that_comes_late_does_both(void **state) {
    (void)state;
    struct table table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, yes(60, PRIOR_CLEAN));
    answer(&table, 2, just_held_by(99));
    wait_for_it(&table); /* the rival is to be asked again */
    answer(&table, 3, yes(60, PRIOR_CLEAN));
    assert_true(is_silent(&table));
    table.now_ns += 60 * MS; /* and those who are silent were waited for */
    round_tick(&table.round, table.now_ns);
    take_requests(&table);
    assert_int_equal(told(&table).outcome, OUTCOME_YES);
}

static void a_rival_may_give_back_the_proof_that_is_missing(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, yes(60, PRIOR_NONE)); /* a majority, but it would have to wait for W */
    answer(&table, 2, just_held_by(99));
    assert_true(is_silent(&table));
    wait_for_it(&table);
    assert_int_equal(table.asked[2].ask.op, OP_ACQUIRE);
    answer(&table, 2, yes(60, PRIOR_CLEAN));
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_int_equal(reply.prior, PRIOR_CLEAN);

    /* Not for ever: one that is gone gives nothing back. */
    table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, yes(60, PRIOR_NONE));
    answer(&table, 2, just_held_by(99));
    while (is_silent(&table)) {
        wait_for_it(&table);
        if (table.asked[2].ask.op == OP_ACQUIRE) {
            answer(&table, 2, just_held_by(99));
        }
        assert_true(table.now_ns < 1000 * S + ATTEMPT);
    }
    assert_int_equal(table.round.reply.outcome, OUTCOME_YES);
    assert_int_equal(table.round.reply.prior, PRIOR_NONE);
}

static void who_is_refused_for_its_settings_sleeps(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer_listed(&table, 1, held_by(99), LISTS_FURTHER_APART);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.reason, REASON_STORE_REFUSED);
    assert_true(reply.held && reply.expires_in_ns == -1); /* not what a free key suggests */
}

static void a_collision_after_many_a_look_is_one(void **state) {
    (void)state;
    struct table table = laid(3);
    for (int i = 0; i < 8; i++) {
        acquire(&table); /* somebody leads */
        for (size_t node = 0; node < 3; node++) {
            answer(&table, node, just_held_by(200));
        }
        assert_true(told(&table).expires_in_ns > S);
    }
    table.nonce = 220;
    for (int i = 0; i < 5; i++) {
        acquire(&table);
        answer(&table, 0, just_held_by(97));
        answer(&table, 1, just_held_by(98));
        struct store_reply reply = told(&table);
        /* What others took they give back soon; unless they are gone. */
        assert_true(i < 3 ? reply.expires_in_ns < 100 * MS : reply.expires_in_ns > S);
        answer(&table, 2, just_held_by(99));
    }
}

static void what_a_rival_had_counts_while_it_is_asked_again(void **state) {
    (void)state;
    struct table table = laid(3);
    table.nonce = 200; /* never the favourite of two that have as much */
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, just_held_by(99));
    assert_true(is_silent(&table));
    answer(&table, 2, just_held_by(99));
    assert_int_equal(told(&table).outcome, OUTCOME_NO); /* it holds two */

    table = laid(5);
    acquire(&table);
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, yes(60, PRIOR_CLEAN));
    answer(&table, 2, just_held_by(99));
    answer(&table, 3, just_held_by(99));
    answer(&table, 4, just_held_by(98)); /* two each: the smaller nonce asks again */
    wait_for_it(&table);
    assert_int_equal(table.asked[4].ask.op, OP_ACQUIRE);
    table.now_ns += 30 * MS;
    answer(&table, 4, just_held_by(99)); /* the near one: now the rival has three */
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
}

static void tokens_of_failed_attempts_are_not_learnt(void **state) {
    (void)state;
    struct table table = laid(3);
    struct store_reply held[] = {just_held_by(97), just_held_by(98), just_held_by(99)};
    table.nonce = 200;
    acquire(&table);
    for (size_t i = 0; i < 3; i++) {
        held[i].token = 60 + i; /* each made on one node alone */
        answer(&table, i, held[i]);
    }
    assert_true(told(&table).token == 0);

    acquire(&table);
    held[0].token = held[1].token;
    for (size_t i = 0; i < 3; i++) {
        answer(&table, i, held[i]);
    }
    assert_true(told(&table).token == 61);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_that_collide_the_favourite_stays),
        cmocka_unit_test(rivals_do_not_wait_for_silent_nodes),
        cmocka_unit_test(who_is_gone_is_no_rival),
        cmocka_unit_test(what_a_rival_had_counts_while_it_is_asked_again),
        cmocka_unit_test(a_timer_that_comes_late_does_both),
        cmocka_unit_test(a_rival_may_give_back_the_proof_that_is_missing),
        cmocka_unit_test(who_is_refused_for_its_settings_sleeps),
        cmocka_unit_test(a_collision_after_many_a_look_is_one),
        cmocka_unit_test(tokens_of_failed_attempts_are_not_learnt),
    };
    return cmocka_run_group_tests_name("round_rivals", tests, NULL, NULL);
}
