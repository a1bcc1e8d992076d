#include "socket_kit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The real numbers for people, small ones for patience. */
static int setup_quick(void **state) {
    struct rig *rig = rig_create();
    rig->limits.first_request_ms = 50;
    rig->limits.linger_ms = 50;
    rig->limits.stuck_ms = 50;
    rig->limits.idle_ms = 1000;
    rig_listen(rig);
    *state = rig;
    return 0;
}

static void test_a_silent_newcomer_is_ended(void **state) {
    struct rig *rig = *state;
    struct peer *silent = peer_connect(rig);
    struct peer *half = peer_connect(rig);
    struct peer *served = peer_connect(rig);
    peer_send(half, "chec");
    peer_ask(rig, served, "check\n", "follower -");
    peer_expect_prefix(rig, silent, "error bad-request ");
    peer_expect_end(rig, silent);
    peer_expect_prefix(rig, half, "error bad-request ");
    peer_expect_end(rig, half);
    rig_run_for(rig, 100);
    peer_ask(rig, served, "check\n", "follower -"); /* who has asked once may stay */
    peer_close(silent);
    peer_close(half);
    peer_close(served);
}

/* Its request came in time; the loop did not turn. */
static void test_a_stall_is_not_held_against_a_newcomer(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == 1);
    peer_send(peer, "check\n");
    usleep(60000);
    assert_string_equal(peer_line(rig, peer), "follower -");
    peer_close(peer);
}

static void test_who_does_not_take_replies_is_ended(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    while (rig_clients(rig, PHASE_SERVING) == 0) {
        rig_turn(rig);
    }
    while (rig_clients(rig, PHASE_SERVING) == 1) {
        send(peer->fd, "status\n", 7, MSG_NOSIGNAL);
        rig_turn(rig);
    }
    peer_close(peer);
}

static void test_who_takes_them_late_may_stay(void **state) {
    struct rig *rig = *state;
    rig->server->limits.stuck_ms = 1000;
    struct peer *peer = peer_connect(rig);
    size_t asked = 0;
    while (rig->server->clients == NULL || rig->server->clients->unsent == NULL) {
        peer_send(peer, "status\n");
        asked++;
        rig_turn(rig);
    }
    for (size_t i = 0; i < asked; i++) {
        peer_expect_prefix(rig, peer, "{\"election\":\"billing\"");
    }
    rig_run_for(rig, 1050);
    peer_ask(rig, peer, "check\n", "follower -");
    peer_close(peer);
}

static void test_a_refused_client_that_stays_is_ended(void **state) {
    struct rig *rig = *state;
    int64_t start_ms = test_now_ms();
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "bogus\n");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_REFUSED) == 1);
    RIG_UNTIL(rig, rig_clients(rig, PHASE_REFUSED) == 0);
    assert_true(test_now_ms() - start_ms >= 40);
    peer_expect_prefix(rig, peer, "error bad-request ");
    peer_expect_end(rig, peer);
    peer_close(peer);
}

#define CROWD 300

static struct peer **crowd_connect(struct rig *rig, const char *text) {
    struct peer **crowd = calloc(CROWD, sizeof(struct peer *));
    assert_non_null(crowd);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = peer_connect(rig);
        peer_send(crowd[i], text);
        rig_turn(rig);
    }
    return crowd;
}

static void crowd_close(struct peer **crowd) {
    for (size_t i = 0; i < CROWD; i++) {
        peer_close(crowd[i]);
    }
    free(crowd);
}

static void raise_descriptor_limit(void) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Half lines and silence: the oldest go, everybody who asks is answered. */
static void test_idlers_do_not_lock_out(void **state) {
    struct rig *rig = *state;
    rig->server->limits.first_request_ms = 60000; /* the machine may be slow */
    struct peer *early = peer_connect(rig);
    peer_ask(rig, early, "check\n", "follower -");
    struct peer **crowd = crowd_connect(rig, "chec");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == 256);
    peer_expect_prefix(rig, crowd[0], "error too-many ");
    peer_expect_end(rig, crowd[0]);
    peer_read(crowd[CROWD - 1]);
    assert_false(crowd[CROWD - 1]->ended);
    struct peer *late = peer_connect(rig);
    peer_ask(rig, late, "check\n", "follower -");
    peer_ask(rig, early, "check\n", "follower -");
    peer_close(early);
    peer_close(late);
    crowd_close(crowd);
}

/* All of them have asked just now: none gives way, the 257th is told. */
static void test_one_too_many(void **state) {
    struct rig *rig = *state;
    rig->server->limits.idle_ms = 60000;
    struct peer **crowd = crowd_connect(rig, "check\n");
    for (size_t i = 0; i < 256; i++) {
        assert_string_equal(peer_line(rig, crowd[i]), "follower -");
    }
    for (size_t i = 256; i < CROWD; i++) {
        peer_expect_prefix(rig, crowd[i], "error too-many ");
        peer_expect_end(rig, crowd[i]);
    }
    assert_int_equal(rig_clients(rig, PHASE_SERVING), 256);
    peer_close(crowd[7]);
    RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == 255);
    crowd[7] = peer_connect(rig);
    peer_ask(rig, crowd[7], "check\n", "follower -");
    crowd_close(crowd);
}

static void test_the_longest_idle_gives_way(void **state) {
    struct rig *rig = *state;
    rig->server->limits.clients = 3;
    rig->server->limits.idle_ms = 50;
    struct peer *peers[4];
    for (size_t i = 0; i < 3; i++) {
        peers[i] = peer_connect(rig);
        peer_ask(rig, peers[i], "check\n", "follower -");
    }
    rig_run_for(rig, 60);
    peer_ask(rig, peers[0], "check\n", "follower -");
    peer_ask(rig, peers[2], "check\n", "follower -");
    peers[3] = peer_connect(rig);
    peer_ask(rig, peers[3], "check\n", "follower -");
    peer_expect_prefix(rig, peers[1], "error too-many ");
    peer_expect_end(rig, peers[1]);
    peer_ask(rig, peers[0], "check\n", "follower -");
    peer_ask(rig, peers[2], "check\n", "follower -");
    for (size_t i = 0; i < 4; i++) {
        peer_close(peers[i]);
    }
}

/* Before the others, be they older or newer. */
static void test_who_never_asked_gives_way_first(void **state) {
    struct rig *rig = *state;
    rig->server->limits.clients = 3;
    rig->server->limits.idle_ms = 0;
    struct peer *peers[4];
    for (size_t i = 0; i < 4; i++) {
        peers[i] = peer_connect(rig);
        if (i != 1) {
            peer_ask(rig, peers[i], "check\n", "follower -");
        }
        RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == (i < 3 ? i + 1 : 3));
        rig_run_for(rig, 5);
    }
    peer_expect_prefix(rig, peers[1], "error too-many ");
    peer_ask(rig, peers[0], "check\n", "follower -");
    peer_ask(rig, peers[2], "check\n", "follower -");
    for (size_t i = 0; i < 4; i++) {
        peer_close(peers[i]);
    }
}

static void test_watchers_and_askers_do_not_give_way(void **state) {
    struct rig *rig = *state;
    rig->server->limits.clients = 2;
    rig->server->limits.idle_ms = 0;
    struct peer *watcher = peer_connect(rig);
    peer_ask(rig, watcher, "watch\n", "follower -");
    struct peer *asker = peer_connect(rig);
    peer_send(asker, "resign\n");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_RESIGNING) == 1);
    struct peer *late = peer_connect(rig);
    peer_expect_prefix(rig, late, "error too-many ");
    peer_expect_end(rig, late);
    assert_int_equal(rig_clients(rig, PHASE_WATCHING), 1);
    assert_int_equal(rig_clients(rig, PHASE_RESIGNING), 1);
    peer_close(watcher);
    peer_close(asker);
    peer_close(late);
}

static void test_too_many_watchers(void **state) {
    struct rig *rig = *state;
    struct peer *watchers[129];
    for (size_t i = 0; i < 128; i++) {
        watchers[i] = peer_connect(rig);
        peer_ask(rig, watchers[i], "watch\n", "follower -");
    }
    assert_int_equal(rig->counters.watchers, 128);
    watchers[128] = peer_connect(rig);
    peer_send(watchers[128], "watch\n");
    peer_expect_prefix(rig, watchers[128], "error too-many ");
    peer_expect_end(rig, watchers[128]);
    peer_close(watchers[3]);
    RIG_UNTIL(rig, rig->counters.watchers == 127);
    watchers[3] = peer_connect(rig);
    peer_ask(rig, watchers[3], "watch\n", "follower -");
    for (size_t i = 0; i < 129; i++) {
        peer_close(watchers[i]);
    }
}

/* Even those who may not linger are bounded in number and told. */
static void test_refused_clients_are_bounded(void **state) {
    struct rig *rig = *state;
    rig->server->limits.linger_ms = 60000;
    struct peer **crowd = crowd_connect(rig, "bogus\n");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_SERVING) == 0);
    assert_int_equal(rig_clients(rig, PHASE_REFUSED), 64);
    for (size_t i = 0; i < CROWD; i++) {
        peer_expect_prefix(rig, crowd[i], "error bad-request ");
        peer_expect_end(rig, crowd[i]);
    }
    crowd_close(crowd);
}

/* Out of descriptors: those who wait are served later, and the loop does not spin meanwhile. */
static void test_out_of_descriptors(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    close(next);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    peer_send(peer, "check\n");
    int turns = 0;
    for (int64_t end_ms = test_now_ms() + 350; test_now_ms() < end_ms; turns++) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(turns <= 20);
    assert_false(peer_has_line(peer));
    assert_false(peer->ended);
    assert_string_equal(peer_line(rig, peer), "follower -");
    peer_close(peer);
}

#define QUICK_TEST(name) cmocka_unit_test_setup_teardown(name, setup_quick, rig_teardown)

int main(void) {
    raise_descriptor_limit();
    const struct CMUnitTest tests[] = {
        QUICK_TEST(test_a_silent_newcomer_is_ended),
        QUICK_TEST(test_a_stall_is_not_held_against_a_newcomer),
        QUICK_TEST(test_who_does_not_take_replies_is_ended),
        QUICK_TEST(test_who_takes_them_late_may_stay),
        QUICK_TEST(test_a_refused_client_that_stays_is_ended),
        RIG_TEST(test_idlers_do_not_lock_out),
        RIG_TEST(test_one_too_many),
        RIG_TEST(test_the_longest_idle_gives_way),
        RIG_TEST(test_who_never_asked_gives_way_first),
        RIG_TEST(test_watchers_and_askers_do_not_give_way),
        RIG_TEST(test_too_many_watchers),
        RIG_TEST(test_refused_clients_are_bounded),
        RIG_TEST(test_out_of_descriptors),
    };
    return cmocka_run_group_tests_name("socket limits", tests, NULL, NULL);
}
