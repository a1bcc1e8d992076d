#include "round_table.h"

/* Lists of nodes that have no majority in common. */

static void a_list_too_far_from_ours_is_not_led_under(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer_listed(&table, 0, missing, LISTS_FURTHER_APART);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_int_equal(reply.reason, REASON_STORE_REFUSED);
    assert_true((reply.warnings & WARNING_NODE_LIST_DIFFERS) != 0);

    table = leading();
    start(&table, OP_RENEW, (struct round_ask){.take = false});
    answer_listed(&table, 0, yes(90, PRIOR_NONE), LISTS_ONE_APART);
    answer(&table, 1, yes(90, PRIOR_NONE));
    reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_true((reply.warnings & WARNING_NODE_LIST_DIFFERS) != 0);
    assert_true((reply.warnings & WARNING_EVEN_NODES) == 0);
}

/* Two candidates start in the same moment, and their lists have one node in common. */
static void who_leads_at_once_hears_of_another_list_first(void **state) {
    (void)state;
    struct table table = laid(3);
    struct store_reply other = held_by(99);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer(&table, 1, yes(90, PRIOR_CLEAN));
    assert_true(is_silent(&table));
    answer_listed(&table, 2, other, LISTS_FURTHER_APART);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_int_equal(reply.reason, REASON_STORE_REFUSED);

    /* It may still come while the token is written. */
    table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer(&table, 1, yes(80, PRIOR_CLEAN));
    wait_for_it(&table);
    assert_int_equal(table.asked[1].ask.op, OP_RENEW);
    answer_listed(&table, 2, other, LISTS_FURTHER_APART);
    assert_int_equal(told(&table).outcome, OUTCOME_NO);

    /* Or while it is raised, after a wait. */
    table = leading();
    start(&table, OP_RENEW, (struct round_ask){.raise_token = true});
    answer(&table, 0, yes(120, PRIOR_NONE));
    answer(&table, 1, yes(110, PRIOR_NONE));
    wait_for_it(&table); /* its patience is over */
    assert_int_equal(table.asked[1].ask.op, OP_RENEW);
    answer_listed(&table, 2, other, LISTS_FURTHER_APART);
    assert_int_equal(told(&table).outcome, OUTCOME_NO);
}

/* The grant itself writes over it, so that only the first answer tells. */
static void a_list_that_has_run_out_is_warned_of_for_a_wait(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer_listed(&table, 1, yes(90, PRIOR_CLEAN), LISTS_RUN_OUT);
    wait_for_it(&table);
    struct store_reply reply = told(&table);
    assert_int_equal(reply.outcome, OUTCOME_YES); /* it is not in the way */
    assert_true((reply.warnings & WARNING_NODE_LIST_DIFFERS) != 0);
    answer(&table, 2, silence);

    for (int i = 0; i < 4; i++) { /* W is 10 s */
        table.now_ns += 3 * S;
        start(&table, OP_RENEW, (struct round_ask){.take = false});
        for (size_t node = 0; node < 3; node++) {
            answer(&table, node, yes(90, PRIOR_NONE));
        }
        reply = told(&table);
        assert_int_equal(reply.outcome, OUTCOME_YES);
        assert_int_equal((reply.warnings & WARNING_NODE_LIST_DIFFERS) != 0, i < 3);
    }
}

/* Three names of one server: nobody else holds anything. */
static void names_of_one_server_are_called_so(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct table table = laid(3);
        acquire(&table);
        for (size_t node = 0; node < 3; node++) {
            struct store_reply reply = yes(90, PRIOR_CLEAN);
            reply.sent.boot_ns = table.now_ns;
            reply.server[0] = named ? 's' : '\0'; /* or it does not say who it is */
            table.asked[node].ask.op = OP_NONE;
            round_answered(&table.round, node, &reply, LISTS_SAME, table.now_ns);
            take_requests(&table);
        }
        struct store_reply reply = told(&table);
        assert_int_equal(reply.outcome, OUTCOME_NO);
        assert_int_equal(reply.reason, REASON_STORE_REFUSED);
        assert_true(table.round.one_server);
        assert_int_equal(table.asked[2].ask.op, OP_RELEASE);
    }
    struct table table = laid(3); /* in a plain defeat nobody is blamed for that */
    acquire(&table);
    answer(&table, 0, yes(90, PRIOR_CLEAN));
    answer(&table, 1, held_by(99));
    answer(&table, 2, held_by(99));
    assert_int_equal(told(&table).reason, REASON_HELD_BY_OTHER);
    assert_false(table.round.one_server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_too_far_from_ours_is_not_led_under),
        cmocka_unit_test(names_of_one_server_are_called_so),
        cmocka_unit_test(a_list_that_has_run_out_is_warned_of_for_a_wait),
        cmocka_unit_test(who_leads_at_once_hears_of_another_list_first),
    };
    return cmocka_run_group_tests_name("round_lists", tests, NULL, NULL);
}
