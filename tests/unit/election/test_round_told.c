#include "round_table.h"

/* What nodes tell of locks that were given back. */

static bool tells(struct table *table, size_t node, unsigned char first, bool *clean) {
    unsigned char nonce[NONCE_BYTES] = {first};
    bool tries = round_told(&table->round, node, nonce, clean);
    take_requests(table);
    return tries;
}

static bool tells_clean(struct table *table, size_t node, unsigned char first) {
    bool clean = true;
    return tells(table, node, first, &clean);
}

static void a_majority_has_to_tell_of_the_same_one(void **state) {
    (void)state;
    struct table table = laid(5);
    bool clean = true;
    assert_false(tells_clean(&table, 0, 200));
    assert_false(tells_clean(&table, 1, 201)); /* of candidates that collided */
    assert_false(tells_clean(&table, 2, 202));
    assert_false(tells_clean(&table, 3, 201));
    assert_false(tells_clean(&table, 3, 201)); /* twice is once */
    assert_true(tells(&table, 4, 201, &clean));
    assert_true(clean);
    assert_false(tells_clean(&table, 0, 201)); /* known by now */
}

static void the_mark_has_to_be_on_all_of_them(void **state) {
    (void)state;
    struct table table = laid(3);
    bool clean = false;
    assert_false(tells(&table, 0, 200, &clean));
    clean = true;
    assert_true(tells(&table, 1, 200, &clean));
    assert_false(clean);
}

static void an_operation_that_begins_knows_of_none(void **state) {
    (void)state;
    struct table table = laid(3);
    assert_false(tells_clean(&table, 0, 200));
    acquire(&table);
    assert_false(tells_clean(&table, 1, 200));
    assert_true(tells_clean(&table, 2, 200));
}

/* By hand: all that come without a nonce are alike. */
static void a_message_without_a_nonce_counts(void **state) {
    (void)state;
    struct table table = laid(3);
    assert_false(tells_clean(&table, 0, 0));
    assert_true(tells_clean(&table, 1, 0));
}

static void its_own_releases_are_no_news(void **state) {
    (void)state;
    struct table table = laid(3);
    table.nonce = 199;
    for (int i = 0; i < 3; i++) {
        acquire(&table);
        for (size_t node = 0; node < 3; node++) {
            answer(&table, node, held_by(99));
        }
        assert_int_equal(told(&table).outcome, OUTCOME_NO);
    }
    for (unsigned char own = 200; own < 203; own++) { /* some are told of late */
        for (size_t node = 0; node < 3; node++) {
            assert_false(tells_clean(&table, node, own));
        }
    }
    assert_false(tells_clean(&table, 0, 99));
    assert_true(tells_clean(&table, 1, 99));
}

static void a_node_that_is_freed_is_asked_again_at_once(void **state) {
    (void)state;
    struct table table = laid(3);
    acquire(&table);
    (void)tells_clean(&table, 1, 98); /* it has not said anything yet */
    answer(&table, 0, yes(60, PRIOR_CLEAN));
    answer(&table, 1, held_by(98));
    (void)tells_clean(&table, 1, 98); /* too early: who is the favourite? */
    assert_int_equal(table.asked[1].ask.op, OP_NONE);
    answer(&table, 2, held_by(99));
    (void)tells_clean(&table, 1, 98);
    assert_int_equal(table.asked[1].ask.op, OP_ACQUIRE);
    assert_int_equal(table.asked[2].ask.op, OP_NONE);
    (void)tells_clean(&table, 0, 98);
    assert_int_equal(table.asked[0].ask.op, OP_NONE); /* it is ours */
    answer(&table, 1, yes(60, PRIOR_CLEAN));
    assert_int_equal(told(&table).outcome, OUTCOME_YES);
    (void)tells_clean(&table, 2, 99); /* and nothing is asked of those who lead */
    assert_int_equal(table.asked[2].ask.op, OP_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_has_to_tell_of_the_same_one),
        cmocka_unit_test(the_mark_has_to_be_on_all_of_them),
        cmocka_unit_test(an_operation_that_begins_knows_of_none),
        cmocka_unit_test(a_message_without_a_nonce_counts),
        cmocka_unit_test(its_own_releases_are_no_news),
        cmocka_unit_test(a_node_that_is_freed_is_asked_again_at_once),
    };
    return cmocka_run_group_tests_name("round_told", tests, NULL, NULL);
}
