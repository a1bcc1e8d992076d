#include "socket_kit.h"

#include "base/clock.h"

#include <string.h>
#include <sys/socket.h>

static void test_the_line_now_and_at_each_change(void **state) {
    struct rig *rig = *state;
    rig_add_election(rig);
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch billing\n", "follower -");
    assert_int_equal(rig->counters.watchers, 1);
    assert_int_equal(rig->counters.api_requests[LISTENER_SOCKET][CODE_OK], 1);
    rig_follow(rig, 1, "pod-z"); /* not the one that is watched */
    rig_follow(rig, 0, "pod-b");
    assert_string_equal(peer_line(rig, peer), "follower pod-b");
    rig_lead(rig, 0, 77, 60 * NS_PER_S, true);
    struct leader_line line = peer_expect_leader(rig, peer);
    assert_int_equal(line.token, 77);
    assert_int_equal(line.valid_ms, 2000);
    assert_int_equal(line.deadline_ns, rig->entries[0].handouts.until_ns);
    rig_follow(rig, 1, "pod-y");
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    rig_state(rig, 0, STATE_RESIGNING);
    assert_string_equal(peer_line(rig, peer), "follower -");
    rig_state(rig, 0, STATE_UNKNOWN); /* reads the same */
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    peer_close(peer);
    RIG_UNTIL(rig, rig->counters.watchers == 0);
}

static void test_each_half_validity(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    rig_lead(rig, 0, 77, 60 * NS_PER_S, true);
    rig->entries[0].view.valid_for_ns = 400 * NS_PER_MS;
    peer_send(peer, "watch\n");
    int64_t before_ns = 0;
    for (int i = 0; i < 3; i++) {
        struct leader_line line = peer_expect_leader(rig, peer);
        assert_int_equal(line.valid_ms, 400);
        assert_int_equal(line.deadline_ns, rig->entries[0].handouts.until_ns);
        assert_int_equal(rig->server->clients->push_ns, line.deadline_ns - 200 * NS_PER_MS);
        if (i > 0) {
            /* timers count in whole milliseconds */
            assert_true(line.deadline_ns - before_ns >= 198 * NS_PER_MS);
        }
        before_ns = line.deadline_ns;
    }
    peer_close(peer);
}

static void test_a_renewal_is_seen_at_the_next_half(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    rig_lead(rig, 0, 77, 1500 * NS_PER_MS, true);
    peer_send(peer, "watch\n");
    assert_true(peer_expect_leader(rig, peer).valid_ms < 1500);
    rig_lead(rig, 0, 77, 8 * NS_PER_S, false);
    assert_int_equal(peer_expect_leader(rig, peer).valid_ms, 2000);
    peer_close(peer);
}

/* Nobody publishes anything: the clock alone ends it. */
static void test_the_deadline_is_pushed(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    int64_t start_ns = clock_now().boot_ns;
    rig_lead(rig, 0, 77, 1000 * NS_PER_MS, true);
    peer_send(peer, "watch\n");
    unsigned lines = 0;
    const char *line = peer_line(rig, peer);
    while (strncmp(line, "leader 77 ", 10) == 0) {
        lines++;
        line = peer_line(rig, peer);
    }
    assert_string_equal(line, "follower -");
    int64_t taken_ns = clock_now().boot_ns - start_ns;
    assert_true(taken_ns >= 998 * NS_PER_MS && taken_ns < 5 * NS_PER_S);
    assert_true(lines >= 2 && lines <= 14);
    peer_close(peer);
}

/* Leading again after a doubt is no change of state for the core. */
static void test_the_end_of_a_doubt_is_pushed(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    rig_lead(rig, 0, 77, 60 * NS_PER_S, true);
    rig->entries[0].view.lease.real_deadline_ns = 1;
    peer_ask(rig, peer, "watch\n", "follower -");
    assert_int_equal(rig->doubts[0] > 0, 1);
    rig->entries[0].handouts.doubted_ns = 0;
    rig_lead(rig, 0, 77, 60 * NS_PER_S, false);
    assert_int_equal(peer_expect_leader(rig, peer).token, 77);
    peer_close(peer);
}

static void test_input_ends_it(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch\n", "follower -");
    peer_send(peer, "check\n");
    peer_expect_prefix(rig, peer, "error bad-request ");
    peer_expect_end(rig, peer);
    assert_int_equal(rig->counters.watchers, 0);
    peer_close(peer);

    peer = peer_connect(rig);
    peer_send(peer, "watch\nx");
    assert_string_equal(peer_line(rig, peer), "follower -");
    peer_expect_prefix(rig, peer, "error bad-request ");
    peer_expect_end(rig, peer);
    peer_close(peer);
}

/* Changes far faster than it reads: old lines are few, the last line is the latest state, and the
 * server keeps at most one line. */
static void test_a_slow_watcher_is_coalesced(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch\n", "follower -");
    for (int i = 0; i < 1000; i++) {
        rig_follow(rig, 0, i % 2 == 0 ? "pod-b" : "pod-c");
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    assert_non_null(rig->server->clients->unsent);
    assert_true(strlen(rig->server->clients->unsent) < 32);
    rig_follow(rig, 0, "pod-last");
    unsigned lines = 1;
    while (strcmp(peer_line(rig, peer), "follower pod-last") != 0) {
        lines++;
    }
    assert_true(lines < 50);
    rig_follow(rig, 0, "pod-b");
    assert_string_equal(peer_line(rig, peer), "follower pod-b");
    peer_close(peer);
}

static void test_a_slow_watcher_gets_no_old_validity_late(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch\n", "follower -");
    while (rig->server->clients->unsent == NULL) {
        rig_follow(rig, 0, "pod-b");
        rig_follow(rig, 0, "pod-c");
    }
    rig_lead(rig, 0, 1, 60 * NS_PER_S, true);
    rig_state(rig, 0, STATE_RESIGNING); /* before that line could leave */
    const char *line;
    do {
        line = peer_line(rig, peer);
        assert_true(strncmp(line, "leader", 6) != 0);
    } while (strcmp(line, "follower -") != 0);
    assert_int_equal(rig->entries[0].handouts.until_ns, 0); /* and nothing was promised */
    peer_close(peer);
}

static void test_a_stuck_watcher_is_dropped(void **state) {
    struct rig *rig = *state;
    rig->server->limits.stuck_ms = 200;
    struct peer *stuck = peer_connect(rig);
    struct peer *other = peer_connect(rig);
    peer_ask(rig, stuck, "watch\n", "follower -");
    peer_ask(rig, other, "watch\n", "follower -");
    struct socket_client *client = rig->server->clients->next;
    int64_t start_ms = test_now_ms();
    int i = 0;
    while (client->unsent == NULL) {
        rig_follow(rig, 0, i++ % 2 == 0 ? "pod-b" : "pod-c");
        peer_line(rig, other);
    }
    RIG_UNTIL(rig, (peer_read(other), rig->counters.watchers == 1));
    assert_true(test_now_ms() - start_ms >= 190);
    rig_follow(rig, 0, "pod-last");
    while (strcmp(peer_line(rig, other), "follower pod-last") != 0) {
    }
    peer_close(stuck);
    peer_close(other);
}

static void test_half_closed_is_the_end(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch\n", "follower -");
    shutdown(peer->fd, SHUT_WR);
    peer_expect_end(rig, peer);
    RIG_UNTIL(rig, rig->counters.watchers == 0);
    peer_close(peer);
}

static void test_the_end_of_the_server_ends_it(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "watch\n", "follower -");
    rig_close_server(rig);
    peer_expect_end(rig, peer);
    rig_follow(rig, 0, "pod-b"); /* nobody listens any more */
    peer_close(peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_the_line_now_and_at_each_change),
        RIG_TEST(test_each_half_validity),
        RIG_TEST(test_a_renewal_is_seen_at_the_next_half),
        RIG_TEST(test_the_deadline_is_pushed),
        RIG_TEST(test_the_end_of_a_doubt_is_pushed),
        RIG_TEST(test_input_ends_it),
        RIG_TEST(test_a_slow_watcher_is_coalesced),
        RIG_TEST(test_a_slow_watcher_gets_no_old_validity_late),
        RIG_TEST(test_a_stuck_watcher_is_dropped),
        RIG_TEST(test_half_closed_is_the_end),
        RIG_TEST(test_the_end_of_the_server_ends_it),
    };
    return cmocka_run_group_tests_name("socket watch", tests, NULL, NULL);
}
