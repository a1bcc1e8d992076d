#include "base/log.h"
#include "http_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_byte_by_byte(void **state) {
    struct http_fixture *fixture = *state;
    const char *request = "GET /v1/elections/billing HTTP/1.1\r\n" HOST;
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    for (size_t i = 0; i < strlen(request); i++) {
        assert_true(client_send(&fixture->loop, fd, request + i, 1));
        client_turn(&fixture->loop, -1);
    }
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
    close(fd);
}

static void test_random_bytes(void **state) {
    struct http_fixture *fixture = *state;
    unsigned seed = 20261201;
    for (int round = 0; round < 300; round++) {
        unsigned char bytes[600];
        size_t length = (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (unsigned char)rand_r(&seed);
        }
        int fd = client_connect("127.0.0.1", http_port(fixture->api));
        if (round % 3 == 0) {
            client_send(&fixture->loop, fd, "GET /v1/elections/", 18);
        }
        client_send(&fixture->loop, fd, bytes, length);
        client_send(&fixture->loop, fd, "\r\n\r\n", 4);
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
        close(fd);
    }
    http_expect_host(fixture, "localhost", 200);
}

/* Everybody who asks is answered, however many are connected. */
static void test_flood(void **state) {
    struct http_fixture *fixture = *state;
    enum { CLIENTS = 500 };
    const char *request = "GET /v1/leader HTTP/1.1\r\n" HOST;
    static int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect("127.0.0.1", http_port(fixture->api));
        assert_true(client_send(&fixture->loop, fds[i], request, strlen(request)));
    }
    for (int i = 0; i < CLIENTS; i++) {
        struct reply reply;
        client_receive(&fixture->loop, fds[i], false, &reply);
        assert_int_equal(reply.status, 503);
        reply_free(&reply);
    }
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_503], CLIENTS);
}

static void test_silent_crowd(void **state) {
    struct http_fixture *fixture = *state;
    enum { CLIENTS = 400 };
    static int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect("127.0.0.1", http_port(fixture->api));
        if (i % 2 == 0) {
            assert_true(client_send(&fixture->loop, fds[i], "GET /v1/le", 10));
        }
    }
    uint64_t begin_ns = uv_hrtime();
    http_expect_host(fixture, "localhost", 200);
    assert_true(uv_hrtime() - begin_ns < UINT64_C(2000000000));
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
}

static void test_close_with_open_connections(void **state) {
    struct http_fixture *fixture = *state;
    int fds[30];
    for (int i = 0; i < 30; i++) {
        fds[i] = client_connect("127.0.0.1", http_port(fixture->api));
        static const char *const parts[] = {"", "GET /v1/lead", ("GET / HTTP/1.1\r\n" HOST)};
        assert_true(client_send(&fixture->loop, fds[i], parts[i % 3], strlen(parts[i % 3])));
    }
    client_turn(&fixture->loop, -1);
    uint64_t begin_ns = uv_hrtime();
    http_stop(fixture);
    assert_true(uv_hrtime() - begin_ns < UINT64_C(2000000000));
    for (int i = 0; i < 30; i++) {
        assert_true(client_wait_closed(&fixture->loop, fds[i]));
        close(fds[i]);
    }
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_setup_fixture, http_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_byte_by_byte),
        TEST(test_random_bytes),
        TEST(test_flood),
        TEST(test_silent_crowd),
        TEST(test_close_with_open_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
