#include "socket_kit.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t counted(const struct rig *rig, enum counter_code code) {
    return rig->counters.api_requests[LISTENER_SOCKET][code];
}

static void test_check_of_a_leader(void **state) {
    struct rig *rig = *state;
    rig_lead(rig, 0, 1796157414879, 8 * NS_PER_S, true);
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "check\n");
    struct leader_line line = peer_expect_leader(rig, peer);
    assert_int_equal(line.token, 1796157414879);
    assert_int_equal(line.valid_ms, 2000);
    assert_int_equal(line.deadline_ns, rig->entries[0].handouts.until_ns);
    assert_int_equal(counted(rig, CODE_OK), 1);
    assert_int_equal(counted(rig, CODE_ERROR), 0);
    peer_close(peer);
}

static void test_check_follows_the_clock(void **state) {
    struct rig *rig = *state;
    rig_lead(rig, 0, 7, 1000 * NS_PER_MS, true);
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "check billing\n");
    struct leader_line line = peer_expect_leader(rig, peer);
    assert_true(line.valid_ms <= 1000);
    rig_run_for(rig, 1000);
    peer_ask(rig, peer, "check billing\n", "follower -");
    peer_close(peer);
}

static void test_check_of_the_others(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\n", "follower -");
    rig_follow(rig, 0, "pod-b~0123");
    peer_ask(rig, peer, "check\n", "follower pod-b~0123");
    rig_state(rig, 0, STATE_PENDING);
    peer_ask(rig, peer, "check\n", "follower -");
    rig_state(rig, 0, STATE_RESIGNING);
    peer_ask(rig, peer, "check\n", "follower -");
    rig_state(rig, 0, STATE_UNKNOWN);
    peer_ask(rig, peer, "check\n", "follower -");
    assert_int_equal(rig->entries[0].handouts.until_ns, 0);
    peer_close(peer);
}

static void test_status(void **state) {
    struct rig *rig = *state;
    rig_lead(rig, 0, 42, 8 * NS_PER_S, true);
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "status\n");
    json_t *json = json_loads(peer_line(rig, peer), 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "election")), "billing");
    assert_int_equal(json_integer_value(json_object_get(json, "token")), 42);
    assert_int_equal(json_integer_value(json_object_get(json, "valid_for_ms")), 2000);
    json_decref(json);
    assert_true(rig->entries[0].handouts.until_ns > 0);
    assert_int_equal(counted(rig, CODE_OK), 1);
    peer_close(peer);
}

static void test_a_doubt_is_passed_on(void **state) {
    struct rig *rig = *state;
    rig_lead(rig, 0, 42, 8 * NS_PER_S, true);
    rig->entries[0].view.lease.real_deadline_ns = 1;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\n", "follower -");
    assert_int_equal(rig->doubts[0], 1);
    peer_close(peer);
}

static void test_names(void **state) {
    struct rig *rig = *state;
    rig_add_election(rig);
    rig_follow(rig, 0, "pod-b");
    rig_follow(rig, 1, "pod-c");
    struct peer *peer = peer_connect(rig);
    static const char *const verbs[] = {"check", "status", "watch", "resign"};
    for (size_t i = 0; i < 4; i++) {
        char request[32];
        snprintf(request, sizeof request, "%s\n", verbs[i]);
        peer_send(peer, request);
        peer_expect_prefix(rig, peer, "error name-needed ");
        snprintf(request, sizeof request, "%s mai\n", verbs[i]);
        peer_send(peer, request);
        peer_expect_prefix(rig, peer, "error unknown-election ");
    }
    peer_ask(rig, peer, "check mail\n", "follower pod-c");
    peer_ask(rig, peer, "check billing\n", "follower pod-b");
    assert_int_equal(counted(rig, CODE_ERROR), 8);
    assert_int_equal(counted(rig, CODE_OK), 2);
    peer_close(peer);
}

static void test_spaces_and_line_ends(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\r\n", "follower -");
    peer_ask(rig, peer, "  check   billing  \n", "follower -");
    peer_close(peer);
}

static void test_bad_requests(void **state) {
    struct rig *rig = *state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"bogus\n", 6},
        {"\n", 1},
        {"   \n", 4},
        {"checks\n", 7},
        {"chec\n", 5},
        {"CHECK\n", 6},
        {"check\0\n", 7},
        {"\0\n", 2},
        {"check bil\tling\n", 14},
        {"check\x1b[0m\n", 10},
        {"check \x7f\n", 8},
        {"\r\r\n", 3},
        {"check billing x\n", 16},
        {"Attach\n", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct peer *peer = peer_connect(rig);
        peer_send_bytes(peer, cases[i].bytes, cases[i].length);
        peer_send(peer, "check\n"); /* is not answered any more */
        peer_expect_prefix(rig, peer, "error bad-request ");
        peer_expect_end(rig, peer);
        assert_int_equal(counted(rig, CODE_ERROR), i + 1);
        peer_close(peer);
    }
    assert_int_equal(counted(rig, CODE_OK), 0);
}

static void send_long(struct peer *peer, size_t length, const char *end) {
    char line[1024];
    snprintf(line, sizeof line, "check %01000d", 0);
    peer_send_bytes(peer, line, length);
    peer_send(peer, end);
}

static void test_longest_line(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    send_long(peer, 512, "\n");
    peer_expect_prefix(rig, peer, "error unknown-election ");
    send_long(peer, 512, "\r\n");
    peer_expect_prefix(rig, peer, "error unknown-election ");
    peer_ask(rig, peer, "check\n", "follower -");
    send_long(peer, 513, "\n");
    peer_expect_prefix(rig, peer, "error too-long ");
    peer_expect_end(rig, peer);
    peer_close(peer);
}

static void test_too_long_is_told_before_its_end(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    send_long(peer, 512, "");
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    send_long(peer, 7, "");
    peer_expect_prefix(rig, peer, "error too-long ");
    peer_expect_end(rig, peer);
    peer_close(peer);
}

/* A client that writes all of it before it reads gets to hear why it was refused. */
static void test_huge_line(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    static char block[65536];
    memset(block, 'x', sizeof block);
    size_t left = 10 << 20;
    while (left > 0) {
        size_t part = left < sizeof block ? left : sizeof block;
        ssize_t sent = send(peer->fd, block, part, MSG_NOSIGNAL);
        if (sent < 0) {
            assert_int_equal(errno, EAGAIN);
            rig_turn(rig);
        } else {
            left -= (size_t)sent;
        }
    }
    peer_expect_prefix(rig, peer, "error too-long ");
    peer_expect_end(rig, peer);
    peer_close(peer);
}

static void test_byte_by_byte(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    for (const char *byte = "check billing\ncheck"; *byte != '\0'; byte++) {
        peer_send_bytes(peer, byte, 1);
        rig_turn(rig);
    }
    assert_string_equal(peer_line(rig, peer), "follower -");
    rig_run_for(rig, 20);
    assert_false(peer_has_line(peer));
    peer_ask(rig, peer, "\n", "follower -");
    peer_close(peer);
}

static void test_pipelined_in_order(void **state) {
    struct rig *rig = *state;
    rig_follow(rig, 0, "pod-b");
    struct peer *peer = peer_connect(rig);
    for (int i = 0; i < 200; i++) {
        peer_send(peer, "check\nstatus\ncheck no\n");
    }
    for (int i = 0; i < 200; i++) {
        assert_string_equal(peer_line(rig, peer), "follower pod-b");
        peer_expect_prefix(rig, peer, "{\"election\":\"billing\"");
        peer_expect_prefix(rig, peer, "error unknown-election ");
    }
    peer_close(peer);
}

/* Sends without reading: the server stops reading it. Later every request is answered. */
static void test_a_sender_that_does_not_read(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    static const char request[] = "status\n";
    size_t sent = 0;
    int refused = 0;
    while (refused < 50 && sent < 8 << 20) {
        const char *rest = request + sent % 7;
        ssize_t count = send(peer->fd, rest, strlen(rest), MSG_NOSIGNAL);
        if (count > 0) {
            sent += (size_t)count;
            refused = 0;
        } else {
            refused++;
            rig_turn(rig);
        }
    }
    assert_int_equal(refused, 50);
    assert_true(sent < 1 << 20);
    for (size_t i = 0; i < sent / 7; i++) {
        peer_expect_prefix(rig, peer, "{\"election\":\"billing\"");
    }
    peer_send(peer, request + sent % 7);
    peer_expect_prefix(rig, peer, "{\"election\":\"billing\"");
    peer_close(peer);
}

static void test_end_in_the_middle_of_a_line(void **state) {
    struct rig *rig = *state;
    struct peer *peer = peer_connect(rig);
    peer_send(peer, "check\nche");
    shutdown(peer->fd, SHUT_WR);
    assert_string_equal(peer_line(rig, peer), "follower -");
    peer_expect_end(rig, peer);
    RIG_UNTIL(rig, rig_clients(rig, PHASE_CLOSING) == 0 && rig_clients(rig, PHASE_SERVING) == 0);
    peer_close(peer);
}

static void test_close_with_clients_in_every_phase(void **state) {
    struct rig *rig = *state;
    struct peer *peers[4];
    for (size_t i = 0; i < 4; i++) {
        peers[i] = peer_connect(rig);
    }
    peer_send(peers[1], "watch\n");
    peer_send(peers[2], "resign\n");
    peer_send(peers[3], "bogus\n");
    RIG_UNTIL(rig, rig_clients(rig, PHASE_WATCHING) == 1 && rig_clients(rig, PHASE_REFUSED) == 1 &&
                       rig_clients(rig, PHASE_RESIGNING) == 1);
    rig_close_server(rig);
    for (size_t i = 0; i < 4; i++) {
        RIG_UNTIL(rig, (peer_read(peers[i]), peers[i]->ended));
        peer_close(peers[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_check_of_a_leader),
        RIG_TEST(test_check_follows_the_clock),
        RIG_TEST(test_check_of_the_others),
        RIG_TEST(test_status),
        RIG_TEST(test_a_doubt_is_passed_on),
        RIG_TEST(test_names),
        RIG_TEST(test_spaces_and_line_ends),
        RIG_TEST(test_bad_requests),
        RIG_TEST(test_longest_line),
        RIG_TEST(test_too_long_is_told_before_its_end),
        RIG_TEST(test_huge_line),
        RIG_TEST(test_byte_by_byte),
        RIG_TEST(test_pipelined_in_order),
        RIG_TEST(test_a_sender_that_does_not_read),
        RIG_TEST(test_end_in_the_middle_of_a_line),
        RIG_TEST(test_close_with_clients_in_every_phase),
    };
    return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
