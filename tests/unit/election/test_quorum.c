#include "election/quorum.h"

#include "driver.h"

#include <string.h>

#define GOOD_FOR (8 * S)
#define WAIT (10 * S)

static const unsigned char nonce[NONCE_BYTES] = {1, 2, 3};

static struct quorum five(void) {
    struct quorum quorum;
    quorum_init(&quorum, 5, GOOD_FOR, nonce);
    return quorum;
}

static struct store_reply yes_from(const char *server, int64_t sent_ns, uint64_t token) {
    struct store_reply reply = {.outcome = OUTCOME_YES, .token = token};
    reply.sent = (struct instant){sent_ns, sent_ns + 1000 * S};
    strncpy(reply.server, server, SERVER_ID_MAX - 1);
    return reply;
}

static void grant(struct quorum *quorum, size_t node, int64_t sent_ns, enum prior_doubt doubt) {
    static const char *const servers[] = {"a:1", "b:1", "c:1", "d:1", "e:1"};
    struct store_reply reply = yes_from(servers[node], sent_ns, 100 + node);
    quorum_granted(quorum, node, &reply, doubt, sent_ns + 1 * MS);
}

static void renew(struct quorum *quorum, size_t node, const char *server, int64_t sent_ns) {
    struct store_reply reply = yes_from(server, sent_ns, 100 + node);
    quorum_renewed(quorum, node, &reply, sent_ns + 1 * MS);
}

static const struct quorum_rule any = {.counting = false};
static const struct quorum_rule counting = {.counting = true, .wait_ns = WAIT};

static void majority_is_of_the_configured(void **state) {
    (void)state;
    static const size_t majorities[] = {2, 3, 3, 4, 4};
    for (size_t count = 3; count <= 7; count++) {
        struct quorum quorum;
        quorum_init(&quorum, count, GOOD_FOR, nonce);
        assert_int_equal(quorum_majority(&quorum), majorities[count - 3]);
    }
}

static void what_is_proved_counts_at_once_the_rest_after_the_wait(void **state) {
    (void)state;
    struct quorum quorum = five();
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    grant(&quorum, 1, 1000 * S, DOUBT_NONE);
    grant(&quorum, 2, 1000 * S, DOUBT_NO_RECORD);
    assert_int_equal(quorum_votes(&quorum, &any), 3);
    assert_int_equal(quorum_votes(&quorum, &counting), 2);
    assert_int_equal(quorum_doubt(&quorum), DOUBT_NO_RECORD);
    assert_true(quorum_counts_from(&quorum, WAIT) == 1000 * S + 1 * MS + WAIT);

    /* Renewed all along. What counts is a yes that was sent W after the arrival. */
    renew(&quorum, 2, "c:1", 1005 * S);
    renew(&quorum, 2, "c:1", 1000 * S + WAIT);
    assert_int_equal(quorum_votes(&quorum, &counting), 2);
    renew(&quorum, 2, "c:1", 1000 * S + WAIT + 1 * MS);
    assert_int_equal(quorum_votes(&quorum, &counting), 3);
    /* A longer W than was known: not yet. */
    struct quorum_rule longer = {.counting = true, .wait_ns = WAIT + 1};
    assert_int_equal(quorum_votes(&quorum, &longer), 2);
}

static void node_that_restarted_starts_anew(void **state) {
    (void)state;
    struct quorum quorum = five();
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    renew(&quorum, 0, "a:1", 1003 * S);
    assert_true(quorum_counts(&quorum.nodes[0], WAIT));
    renew(&quorum, 0, "z:1", 1006 * S);
    assert_false(quorum_counts(&quorum.nodes[0], WAIT));
    renew(&quorum, 0, "z:1", 1010 * S);
    renew(&quorum, 0, "z:1", 1016 * S + 1 * MS);
    assert_true(quorum_counts(&quorum.nodes[0], WAIT));
}

static void gap_longer_than_the_lease_starts_anew(void **state) {
    (void)state;
    struct quorum quorum = five();
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    renew(&quorum, 0, "a:1", 1000 * S + GOOD_FOR - 1);
    assert_true(quorum_counts(&quorum.nodes[0], WAIT));
    renew(&quorum, 0, "a:1", 1000 * S + 2 * GOOD_FOR - 1);
    assert_false(quorum_counts(&quorum.nodes[0], WAIT));
}

static void yes_after_a_no_starts_anew(void **state) {
    (void)state;
    struct quorum quorum = five();
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    quorum_refused(&quorum, 0, true);
    assert_int_equal(quorum_votes(&quorum, &any), 0);
    renew(&quorum, 0, "a:1", 1001 * S);
    assert_int_equal(quorum_votes(&quorum, &any), 1);
    assert_int_equal(quorum_votes(&quorum, &counting), 0);
}

static void repetition_of_an_acquire_changes_nothing(void **state) {
    (void)state;
    struct quorum quorum = five();
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    grant(&quorum, 0, 1001 * S, DOUBT_UNCLEAN); /* what a retry is told of a lease that ran out */
    assert_true(quorum_counts(&quorum.nodes[0], WAIT));
    /* Another token: the lock was lost and made anew in between. */
    struct store_reply other = yes_from("a:1", 1002 * S, 999);
    quorum_granted(&quorum, 0, &other, DOUBT_UNCLEAN, 1002 * S);
    assert_false(quorum_counts(&quorum.nodes[0], WAIT));
}

static void lease_is_the_majoritys(void **state) {
    (void)state;
    struct quorum quorum = five();
    struct instant sent = {0, 0};
    grant(&quorum, 0, 1004 * S, DOUBT_NONE);
    grant(&quorum, 1, 1001 * S, DOUBT_NONE);
    assert_false(quorum_sent(&quorum, &counting, &sent));
    grant(&quorum, 2, 1003 * S, DOUBT_NONE);
    grant(&quorum, 3, 1002 * S, DOUBT_NONE);
    assert_true(quorum_sent(&quorum, &counting, &sent));
    assert_true(sent.boot_ns == 1002 * S && sent.real_ns == 2002 * S);
    /* Those whose own lease is over are none. */
    struct quorum_rule open = {.counting = true, .wait_ns = WAIT, .open_ns = 1002 * S + GOOD_FOR};
    assert_false(quorum_sent(&quorum, &open, &sent));
}

static void names_of_one_server_are_one_vote(void **state) {
    (void)state;
    struct quorum quorum = five();
    struct store_reply reply = yes_from("a:1", 1000 * S, 5);
    for (size_t i = 0; i < 3; i++) {
        quorum_granted(&quorum, i, &reply, DOUBT_NONE, 1000 * S);
    }
    assert_int_equal(quorum_votes(&quorum, &counting), 1);
    reply = yes_from("a:2", 1000 * S, 5); /* another replication id, the same process */
    quorum_granted(&quorum, 3, &reply, DOUBT_NONE, 1000 * S);
    assert_int_equal(quorum_votes(&quorum, &counting), 1);
    reply = yes_from("ab:1", 1000 * S, 5);
    quorum_granted(&quorum, 4, &reply, DOUBT_NONE, 1000 * S);
    assert_int_equal(quorum_votes(&quorum, &counting), 2);
}

static void those_who_do_not_say_who_they_are_share_a_vote(void **state) {
    (void)state;
    struct quorum quorum = five();
    struct store_reply reply = yes_from("", 1000 * S, 5);
    for (size_t i = 0; i < 5; i++) {
        quorum_granted(&quorum, i, &reply, DOUBT_UNKNOWN_SERVER, 1000 * S);
    }
    assert_int_equal(quorum_votes(&quorum, &any), 1);
}

static void only_nos_that_leave_no_majority_end_it(void **state) {
    (void)state;
    struct quorum quorum = five();
    quorum_refused(&quorum, 0, false);
    quorum_refused(&quorum, 1, true);
    assert_false(quorum_is_over(&quorum));
    quorum_refused(&quorum, 2, true);
    assert_true(quorum_is_over(&quorum));

    quorum_init(&quorum, 4, GOOD_FOR, nonce); /* two of four are no majority */
    quorum_refused(&quorum, 0, false);
    assert_false(quorum_is_over(&quorum));
    quorum_refused(&quorum, 1, false);
    assert_true(quorum_is_over(&quorum));
}

static void token_is_the_greatest_of_those_asked_for(void **state) {
    (void)state;
    struct quorum quorum = five();
    assert_true(quorum_token(&quorum, &any) == 0);
    grant(&quorum, 0, 1000 * S, DOUBT_NONE);
    grant(&quorum, 3, 1001 * S, DOUBT_NONE);
    assert_true(quorum_token(&quorum, &any) == 103);
    struct quorum_rule written = {.token = 103};
    assert_int_equal(quorum_votes(&quorum, &written), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(majority_is_of_the_configured),
        cmocka_unit_test(what_is_proved_counts_at_once_the_rest_after_the_wait),
        cmocka_unit_test(node_that_restarted_starts_anew),
        cmocka_unit_test(gap_longer_than_the_lease_starts_anew),
        cmocka_unit_test(yes_after_a_no_starts_anew),
        cmocka_unit_test(repetition_of_an_acquire_changes_nothing),
        cmocka_unit_test(lease_is_the_majoritys),
        cmocka_unit_test(names_of_one_server_are_one_vote),
        cmocka_unit_test(those_who_do_not_say_who_they_are_share_a_vote),
        cmocka_unit_test(only_nos_that_leave_no_majority_end_it),
        cmocka_unit_test(token_is_the_greatest_of_those_asked_for),
    };
    return cmocka_run_group_tests_name("quorum", tests, NULL, NULL);
}
