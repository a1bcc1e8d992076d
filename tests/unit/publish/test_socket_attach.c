#include "socket_kit.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The connection that stands for the whole application. */

static struct peer *attach(struct rig *rig) {
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "attach\n", "ok");
    RIG_UNTIL(rig, rig->heard[0][APP_ATTACHED] == 1);
    return peer;
}

static void test_its_end_is_told(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    peer_close(peer);
    RIG_UNTIL(rig, rig->heard[0][APP_GONE] == 1);
    assert_int_equal(rig->heard[0][APP_CUT], 0);
}

static void test_its_words_are_told(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    peer_send(peer, "beat\nbeat\ndone 1796157414879\nresign\n");
    RIG_UNTIL(rig, rig->heard[0][APP_RESIGNS] == 1);
    assert_int_equal(rig->heard[0][APP_BEATS], 2);
    assert_int_equal(rig->heard[0][APP_DONE], 1);
    assert_true(rig->done_token == UINT64_C(1796157414879));
    assert_false(peer_has_line(peer)); /* nothing of it has a reply */
    socket_resigned(rig->server, 0);
    assert_string_equal(peer_line(rig, peer), "ok");
    peer_close(peer);
}

static void test_one_attachment_an_election(void **state) {
    struct rig *rig = *state;
    rig_add_election(rig);
    struct peer *one = peer_connect(rig);
    struct peer *two = peer_connect(rig);
    peer_ask(rig, one, "attach billing\n", "ok");
    peer_send(two, "attach billing\n");
    peer_expect_prefix(rig, two, "error busy ");
    peer_ask(rig, two, "attach mail\n", "ok");
    peer_close(one);
    RIG_UNTIL(rig, rig->heard[0][APP_GONE] == 1);
    struct peer *three = peer_connect(rig);
    peer_ask(rig, three, "attach billing\n", "ok");
    peer_close(two);
    peer_close(three);
}

static void test_what_it_must_not_say_cuts_it_off(void **state) {
    struct rig *rig = *state;
    static const char *const lines[] = {"check\n",  "done\n", "done x\n", "done 1234567890123456\n",
                                        "attach\n", "\n"};
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct peer *peer = peer_connect(rig);
        peer_ask(rig, peer, "attach\n", "ok");
        peer_send(peer, lines[i]);
        peer_expect_prefix(rig, peer, "error bad-request ");
        peer_expect_end(rig, peer);
        assert_int_equal(rig->heard[0][APP_CUT], i + 1);
        peer_close(peer);
    }
    assert_int_equal(rig->heard[0][APP_GONE], 0);
}

static void test_revoked_with_the_time_that_is_left(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    socket_revoke(rig->server, 0, 77, clock_now().boot_ns + 5 * NS_PER_S);
    uint64_t token = 0;
    int64_t ms = 0;
    assert_int_equal(sscanf(peer_line(rig, peer), "revoke %" SCNu64 " %" SCNd64, &token, &ms), 2);
    assert_int_equal(token, 77);
    assert_in_range(ms, 1, 5000);
    socket_revoke(rig->server, 0, 77, clock_now().boot_ns - 1);
    assert_string_equal(peer_line(rig, peer), "revoke 77 0");
    peer_close(peer);
}

/* The process of the attached connection is the application: its answers are in the ledger that
 * ends with it. Both are this process here. */
static void test_its_answers_are_kept_apart(void **state) {
    struct rig *rig = *state;
    struct peer *other = peer_connect(rig);
    rig_lead(rig, 0, 5, 8 * NS_PER_S, true);
    peer_send(other, "check\n");
    struct leader_line line = peer_expect_leader(rig, other);
    assert_true(rig->entries[0].handouts.until_ns == line.deadline_ns);
    assert_true(rig->entries[0].handouts.app_until_ns == 0);
    struct peer *peer = attach(rig);
    struct peer *later = peer_connect(rig);
    peer_send(later, "check\n");
    struct leader_line next = peer_expect_leader(rig, later);
    assert_true(rig->entries[0].handouts.app_until_ns == next.deadline_ns);
    assert_true(rig->entries[0].handouts.until_ns == line.deadline_ns);
    /* A connection from before may be a child's too, which has not got the attachment. */
    peer_send(other, "check\n");
    line = peer_expect_leader(rig, other);
    assert_true(rig->entries[0].handouts.until_ns == line.deadline_ns);
    peer_close(peer);
    peer_close(later);
    peer_close(other);
}

/* It may still be at work, and read what it is told. */
static void test_the_end_of_its_sending_is_not_its_end(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    assert_int_equal(shutdown(peer->fd, SHUT_WR), 0);
    peer_expect_end(rig, peer);
    assert_int_equal(rig->heard[0][APP_CUT], 1);
    assert_int_equal(rig->heard[0][APP_GONE], 0);
    peer_close(peer);
}

static void test_the_lease_for_those_who_ask(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    rig_lead(rig, 0, 5, 8 * NS_PER_S, true);
    socket_lease(rig->server, 0);
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer)); /* only check and watch tell, unless it is asked for */
    peer_send(peer, "lease\n");
    uint64_t token = 0;
    int64_t valid_ms = 0, deadline_ns = 0, ttl_ms = 0;
    assert_int_equal(sscanf(peer_line(rig, peer),
                            "lease %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &token, &valid_ms,
                            &deadline_ns, &ttl_ms),
                     4);
    assert_int_equal(token, 5);
    assert_int_equal(ttl_ms, 10000);
    assert_in_range(valid_ms, 1, 8000);
    assert_true(deadline_ns <= rig->entries[0].view.lease.boot_deadline_ns);
    assert_true(rig->entries[0].handouts.app_until_ns == deadline_ns);
    rig_lead(rig, 0, 5, 9 * NS_PER_S, false); /* renewed */
    socket_lease(rig->server, 0);
    peer_expect_prefix(rig, peer, "lease 5 ");
    socket_lease(rig->server, 0); /* nothing new */
    rig_follow(rig, 0, "pod-b");
    socket_lease(rig->server, 0);
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    peer_close(peer);
}

static void test_none_attaches_while_the_process_ends(void **state) {
    struct rig *rig = *state;
    struct peer *peer = attach(rig);
    socket_drain(rig->server);
    struct peer *late = peer_connect(rig);
    peer_send(late, "attach\n");
    peer_expect_prefix(rig, late, "error shutting-down ");
    socket_revoke(rig->server, 0, 77, 0);
    assert_string_equal(peer_line(rig, peer), "revoke 77 0");
    peer_close(peer);
    peer_close(late);
}

static void test_one_that_does_not_read_is_cut_off(void **state) {
    (void)state;
    struct rig *rig = rig_create();
    rig->limits.stuck_ms = 50;
    rig_listen(rig);
    struct peer *peer = attach(rig);
    for (int i = 0; i < 100000 && rig->heard[0][APP_CUT] == 0; i++) {
        socket_revoke(rig->server, 0, 77, 0);
        if (i % 1000 == 0) {
            rig_turn(rig);
        }
    }
    RIG_UNTIL(rig, rig->heard[0][APP_CUT] == 1);
    peer_close(peer);
    rig_destroy(rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_its_end_is_told),
        RIG_TEST(test_its_words_are_told),
        RIG_TEST(test_one_attachment_an_election),
        RIG_TEST(test_what_it_must_not_say_cuts_it_off),
        RIG_TEST(test_revoked_with_the_time_that_is_left),
        RIG_TEST(test_its_answers_are_kept_apart),
        RIG_TEST(test_the_end_of_its_sending_is_not_its_end),
        RIG_TEST(test_the_lease_for_those_who_ask),
        RIG_TEST(test_none_attaches_while_the_process_ends),
        cmocka_unit_test(test_one_that_does_not_read_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
