#include "base/log.h"
#include "httpd_kit.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void test_request_is_passed_on(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    struct reply reply;
    client_ask(&fixture->loop, "127.0.0.1", httpd_port(fixture->httpd),
               "OPTIONS /a%2Fb?c=%20d HTTP/1.1\r\nHost: one\r\nhost: two\r\n\r\n", &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(fixture->last.method, HTTPD_OPTIONS);
    assert_string_equal(fixture->last_path, "/a%2Fb");
    assert_string_equal(fixture->last_query, "c=%20d");
    assert_int_equal(fixture->last.host_count, 2);
    assert_true(fixture->last.needs_host);
    reply_free(&reply);
}

/* Somebody who never gets to the end of a request is cut off. */
static void test_slow_request_is_cut_off(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.request_ms = 50;
    httpd_start(fixture);
    int silent = httpd_connect(fixture);
    int half = httpd_connect(fixture);
    assert_true(client_send(&fixture->loop, half, ASK, 10));
    assert_true(client_wait_closed(&fixture->loop, silent));
    assert_true(client_wait_closed(&fixture->loop, half));
    assert_int_equal(fixture->asked, 0);
    close(silent);
    close(half);
}

/* Each byte is activity, but the limit is on the whole request. */
static void test_dripping_request_is_cut_off(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.request_ms = 200;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    bool open = client_send(&fixture->loop, fd, ASK, strlen(ASK) - 2);
    uint64_t give_up_ns = uv_hrtime() + UINT64_C(5000000000);
    while (open && uv_hrtime() < give_up_ns) {
        poll(NULL, 0, 5); /* the pace of the drip */
        open = client_send(&fixture->loop, fd, "x", 1);
        client_turn(&fixture->loop, -1);
    }
    assert_false(open);
    assert_int_equal(fixture->asked, 0);
    close(fd);
}

static void test_stalled_reader_is_cut_off(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.request_ms = 200;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    assert_true(client_send(&fixture->loop, fd, ASK_BIG, strlen(ASK_BIG)));
    for (uint64_t end_ns = uv_hrtime() + 400000000; uv_hrtime() < end_ns;) {
        client_turn(&fixture->loop, -1);
    }
    /* What was on its way comes, the rest does not. */
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_true(reply.closed);
    assert_true(reply.length < BIG_BYTES);
    reply_free(&reply);
    close(fd);
}

static void test_idle_connection_ends(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.idle_ms = 50;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    httpd_expect_answer_on(fixture, fd);
    assert_true(client_wait_closed(&fixture->loop, fd));
    close(fd);
}

/* The end of the stream comes in one piece with a request and the beginning of another. */
static void test_peer_that_leaves_is_noticed(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    assert_true(send(fd, ASK "GET", strlen(ASK "GET"), MSG_NOSIGNAL) > 0);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
    assert_true(client_wait_closed(&fixture->loop, fd));
    close(fd);
}

/* A full house makes room: the one idle for longest goes, the others stay. */
static void test_longest_idle_makes_room(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fds[LEAST_LIMIT];
    for (int i = 0; i < LEAST_LIMIT; i++) {
        fds[i] = httpd_connect(fixture);
        httpd_expect_answer_on(fixture, fds[i]);
    }
    httpd_expect_answer(fixture);
    assert_true(client_wait_closed(&fixture->loop, fds[0]));
    httpd_expect_answer_on(fixture, fds[1]);
    for (int i = 0; i < LEAST_LIMIT; i++) {
        close(fds[i]);
    }
}

/* However few are allowed, a handful always is. */
static void test_limit_is_never_tiny(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.connection_limit = 1;
    httpd_start(fixture);
    int first = httpd_connect(fixture);
    httpd_expect_answer_on(fixture, first);
    httpd_expect_answer(fixture);
    httpd_expect_answer_on(fixture, first);
    close(first);
}

/* Where the process may open few files, connections get a quarter of them. */
static void test_limit_follows_the_descriptors(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.connection_limit = 256;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    httpd_start(fixture);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    int fds[17];
    for (int i = 0; i < 17; i++) {
        fds[i] = httpd_connect(fixture);
        httpd_expect_answer_on(fixture, fds[i]);
    }
    assert_true(client_wait_closed(&fixture->loop, fds[0]));
    httpd_expect_answer_on(fixture, fds[1]);
    for (int i = 0; i < 17; i++) {
        close(fds[i]);
    }
}

static void test_silent_clients_make_room(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fds[5 * LEAST_LIMIT];
    for (int i = 0; i < 5 * LEAST_LIMIT; i++) {
        fds[i] = httpd_connect(fixture);
    }
    httpd_expect_answer(fixture);
    for (int i = 0; i < 5 * LEAST_LIMIT; i++) {
        close(fds[i]);
    }
}

static void test_several_requests_at_once(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    for (int i = 0; i < LEAST_LIMIT; i++) {
        assert_true(client_send(&fixture->loop, fd, ASK, strlen(ASK)));
    }
    for (int i = 0; i < LEAST_LIMIT; i++) {
        struct reply reply;
        client_receive(&fixture->loop, fd, false, &reply);
        assert_int_equal(reply.status, 200);
        reply_free(&reply);
    }
    assert_int_equal(fixture->asked, LEAST_LIMIT);
    close(fd);
}

/* The path's bits say what the reply is: its status, type, header, body, and whether it has any. */
static void answer_bits(void *context, const struct httpd_request *request,
                        struct httpd_reply *reply) {
    unsigned bits = (unsigned)strtoul(request->path + 1, NULL, 10);
    (void)context;
    reply->status = bits & 1 ? 503 : 200;
    httpd_reply_header(reply, "Fencing-Token", "%s", bits & 2 ? "17" : "18");
    if ((bits & 4) == 0) {
        httpd_reply_text(reply, bits & 8 ? "text/plain" : "application/json",
                         bits & 16 ? "hallo" : "hello");
    }
    if ((bits & 32) != 0) {
        httpd_reply_header(reply, "Retry-After", "1");
    }
}

static void expect_bits(struct httpd_fixture *fixture, int fd, unsigned bits) {
    char ask[64];
    struct reply reply;
    snprintf(ask, sizeof ask, "GET /%u HTTP/1.1\r\nHost: x\r\n\r\n", bits);
    assert_true(client_send(&fixture->loop, fd, ask, strlen(ask)));
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, bits & 1 ? 503 : 200);
    assert_string_equal(reply_header(&reply, "Fencing-Token"), bits & 2 ? "17" : "18");
    assert_int_equal(reply_header(&reply, "Retry-After") != NULL, (bits & 32) != 0);
    if ((bits & 4) != 0) {
        assert_int_equal(reply.length, 0);
        assert_null(reply_header(&reply, "Content-Type"));
    } else {
        assert_string_equal(reply.body, bits & 16 ? "hallo" : "hello");
        assert_string_equal(reply_header(&reply, "Content-Type"),
                            bits & 8 ? "text/plain" : "application/json");
    }
    reply_free(&reply);
}

/* A reply that is like the one before is not made anew; one that differs in anything is. */
static void test_each_gets_its_own_reply(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.handle = answer_bits;
    httpd_start(fixture);
    int one = httpd_connect(fixture);
    int two = httpd_connect(fixture);
    for (unsigned i = 0; i < 128; i++) {
        unsigned bits = (i ^ i >> 1) & 63; /* neighbours differ in one bit */
        expect_bits(fixture, one, bits);
        expect_bits(fixture, two, bits);
        expect_bits(fixture, two, bits ^ 3);
        expect_bits(fixture, one, bits);
    }
    close(one);
    close(two);
}

static void test_one_request_a_connection(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->setup.idle_ms = 0;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    struct reply reply;
    assert_true(client_send(&fixture->loop, fd, ASK, strlen(ASK)));
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Connection"), "close");
    reply_free(&reply);
    assert_true(client_wait_closed(&fixture->loop, fd));
    close(fd);
}

/* Without descriptors the server pauses: it neither spins nor stays deaf. */
static void test_no_descriptors_left(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int waiting = httpd_connect(fixture);
    assert_true(send(waiting, ASK, strlen(ASK), MSG_NOSIGNAL) > 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    unsigned turns = 0;
    for (uint64_t end_ns = uv_hrtime() + 350000000; uv_hrtime() < end_ns; turns++) {
        uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fixture->asked, 0);
    assert_true(turns < 30);
    struct reply reply;
    client_receive(&fixture->loop, waiting, false, &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
    close(waiting);
}

static void test_create_reports_the_error(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    fixture->setup.port = httpd_port(fixture->httpd);
    struct error error = {.text = ""};
    assert_null(httpd_create(&fixture->setup, &error));
    assert_non_null(strstr(error.text, "--test: cannot listen on 127.0.0.1:"));
    httpd_expect_answer(fixture);
}

static void test_decode(void **state) {
    (void)state;
    char text[8];
    assert_true(httpd_decode("a%2fB", 5, text, sizeof text));
    assert_string_equal(text, "a/B");
    assert_true(httpd_decode("", 0, text, sizeof text));
    assert_string_equal(text, "");
    assert_true(httpd_decode("1234567", 7, text, sizeof text));
    static const char *const bad[] = {"%",   "%4",   "a%4", "%zz",  "%0g",
                                      "%00", "a%0a", "%7f", "\x01", "12345678"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(httpd_decode(bad[i], strlen(bad[i]), text, sizeof text));
    }
    /* An escape must not reach beyond its segment. */
    assert_false(httpd_decode("a%41", 3, text, sizeof text));
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, httpd_setup_fixture, httpd_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_request_is_passed_on),        TEST(test_slow_request_is_cut_off),
        TEST(test_dripping_request_is_cut_off), TEST(test_stalled_reader_is_cut_off),
        TEST(test_idle_connection_ends),        TEST(test_peer_that_leaves_is_noticed),
        TEST(test_longest_idle_makes_room),     TEST(test_silent_clients_make_room),
        TEST(test_limit_is_never_tiny),         TEST(test_limit_follows_the_descriptors),
        TEST(test_several_requests_at_once),    TEST(test_one_request_a_connection),
        TEST(test_each_gets_its_own_reply),     TEST(test_no_descriptors_left),
        TEST(test_create_reports_the_error),    cmocka_unit_test(test_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
