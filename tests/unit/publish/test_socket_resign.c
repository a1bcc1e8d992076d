#include "socket_kit.h"

static void test_ok_comes_when_the_lock_is_back(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "resign\n");
    RIG_UNTIL(rig, rig->resigns[0] == 1);
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    socket_resigned(rig->server, 0);
    assert_string_equal(peer_line(rig, peer), "ok");
    assert_int_equal(rig->counters.api_requests[LISTENER_SOCKET][CODE_OK], 1);
    peer_ask(rig, peer, "check\n", "follower -");
    peer_close(peer);
}

static void test_of_the_election_that_was_named(void **state) {
    struct rig *rig = *state;
    rig_add_election(rig);
    struct peer *one = peer_connect(rig);
    struct peer *two = peer_connect(rig);
    peer_send(one, "resign billing\n");
    peer_send(two, "resign mail\n");
    RIG_UNTIL(rig, rig->resigns[0] == 1 && rig->resigns[1] == 1);
    socket_resigned(rig->server, 1);
    assert_string_equal(peer_line(rig, two), "ok");
    rig_run_for(rig, 20);
    assert_false(peer_has_line(one));
    peer_close(one);
    peer_close(two);
}

static void test_several_askers(void **state) {
    struct rig *rig = *state;
    struct peer *peers[3];
    for (size_t i = 0; i < 3; i++) {
        peers[i] = peer_connect(rig);
        peer_send(peers[i], "resign billing\n");
    }
    RIG_UNTIL(rig, rig_clients(rig, PHASE_RESIGNING) == 3);
    assert_int_equal(rig->resigns[0], 1);
    peer_close(peers[1]); /* one does not wait for it */
    socket_resigned(rig->server, 0);
    assert_string_equal(peer_line(rig, peers[0]), "ok");
    assert_string_equal(peer_line(rig, peers[2]), "ok");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == 2);
    peer_close(peers[0]);
    peer_close(peers[2]);
}

static void test_the_next_request_waits(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    rig_follow(rig, 0, "pod-b");
    peer_send(peer, "check\nresign\ncheck\nresign\ncheck\n");
    assert_string_equal(peer_line(rig, peer), "follower pod-b");
    RIG_UNTIL(rig, rig->resigns[0] == 1);
    peer_send(peer, "check\n");
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    rig_follow(rig, 0, "pod-c");
    socket_resigned(rig->server, 0);
    assert_string_equal(peer_line(rig, peer), "ok");
    assert_string_equal(peer_line(rig, peer), "follower pod-c");
    assert_int_equal(rig->resigns[0], 2); /* the second one was asked anew */
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    socket_resigned(rig->server, 0);
    assert_string_equal(peer_line(rig, peer), "ok");
    assert_string_equal(peer_line(rig, peer), "follower pod-c");
    assert_string_equal(peer_line(rig, peer), "follower pod-c");
    peer_close(peer);
}

/* Each asks twice in one go: the second round must be asked for again, for both. */
static void test_two_askers_twice(void **state) {
    struct rig *rig = *state;
    struct peer *peers[2];
    for (size_t i = 0; i < 2; i++) {
        peers[i] = peer_connect(rig);
        peer_send(peers[i], "resign\nresign\n");
    }
    RIG_UNTIL(rig, rig_clients(rig, PHASE_RESIGNING) == 2);
    socket_resigned(rig->server, 0);
    assert_int_equal(rig->resigns[0], 2);
    assert_int_equal(rig_clients(rig, PHASE_RESIGNING), 2);
    socket_resigned(rig->server, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(peer_line(rig, peers[i]), "ok");
        assert_string_equal(peer_line(rig, peers[i]), "ok");
        peer_close(peers[i]);
    }
}

static void test_complete_at_once(void **state) {
    struct rig *rig = *state;
    rig->resigns_at_once = true;
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "resign\nresign\ncheck\n");
    assert_string_equal(peer_line(rig, peer), "ok");
    assert_string_equal(peer_line(rig, peer), "ok");
    assert_string_equal(peer_line(rig, peer), "follower -");
    assert_int_equal(rig->resigns[0], 2);
    peer_close(peer);
}

static void test_nobody_asked(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\n", "follower -");
    socket_resigned(rig->server, 0);
    peer_ask(rig, peer, "check\n", "follower -");
    peer_close(peer);
}

static void test_drain(void **state) {
    struct rig *rig = *state;
    struct peer *waiting = peer_connect(rig);
    struct peer *watcher = peer_connect(rig);
    peer_ask(rig, watcher, "watch\n", "follower -");
    peer_send(waiting, "resign\ncheck\n");
    RIG_UNTIL(rig, rig->resigns[0] == 1);
    socket_drain(rig->server);
    peer_expect_prefix(rig, waiting, "error shutting-down ");
    assert_string_equal(peer_line(rig, waiting), "follower -"); /* checks go on */
    peer_send(waiting, "resign\n");
    peer_expect_prefix(rig, waiting, "error shutting-down ");
    assert_int_equal(rig->resigns[0], 1);
    peer_ask(rig, waiting, "check\n", "follower -");
    rig_follow(rig, 0, "pod-b");
    assert_string_equal(peer_line(rig, watcher), "follower pod-b");
    peer_close(waiting);
    peer_close(watcher);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_ok_comes_when_the_lock_is_back),
        RIG_TEST(test_of_the_election_that_was_named),
        RIG_TEST(test_several_askers),
        RIG_TEST(test_the_next_request_waits),
        RIG_TEST(test_two_askers_twice),
        RIG_TEST(test_complete_at_once),
        RIG_TEST(test_nobody_asked),
        RIG_TEST(test_drain),
    };
    return cmocka_run_group_tests_name("socket resign", tests, NULL, NULL);
}
