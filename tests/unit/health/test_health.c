#include "base/clock.h"
#include "base/log.h"
#include "health_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_livez(void **state) {
    struct health_fixture *fixture = *state;
    health_expect(fixture, "GET /livez HTTP/1.1" END, 200, "ok\n");
    health_expect(fixture, "HEAD /livez HTTP/1.1" END, 200, NULL);
    health_expect(fixture, "GET /livez HTTP/1.0\r\n\r\n", 200, "ok\n");
    assert_int_equal(fixture->counters.api_requests[LISTENER_HEALTH][CODE_200], 3);
}

/* Neither the role nor the store takes a replica out of service. */
static void test_readyz(void **state) {
    struct health_fixture *fixture = *state;
    health_expect(fixture, "GET /readyz HTTP/1.1" END, 503, "not ready\n");
    health_set_ready(fixture->health, true);
    fixture->store.up = false;
    health_expect(fixture, "GET /readyz HTTP/1.1" END, 200, "ok\n");
    health_set_ready(fixture->health, false);
    health_expect(fixture, "GET /readyz HTTP/1.1" END, 503, "not ready\n");
}

static void test_readyz_verbose(void **state) {
    struct health_fixture *fixture = *state;
    fixture->board.count = 2;
    fixture->board.process_warnings = WARNING_LISTENER_EXPOSED;
    fixture->entries[1].view.warnings = WARNING_EVICTION_POLICY;
    snprintf(fixture->store.problem, sizeof fixture->store.problem, "connection refused");
    health_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    fixture->counters.loop_lag_s = 0.0125;
    fixture->counters.loop_stalls = 3;
    static const char *const requests[] = {"GET /readyz?verbose HTTP/1.1" END,
                                           "GET /readyz?verbose=1 HTTP/1.1" END};
    for (int i = 0; i < 2; i++) {
        health_set_ready(fixture->health, i == 1);
        struct reply reply;
        health_ask(fixture, requests[i], &reply);
        assert_int_equal(reply.status, i == 1 ? 200 : 503);
        assert_non_null(strstr(reply.body, i == 1 ? "[+] listeners: up\n" : "[-] listeners: "));
        assert_non_null(
            strstr(reply.body, i == 0 ? "store redis: down, last problem: connection refused\n"
                                      : "store redis: down, redis 7.0.15, last problem: "
                                        "connection refused\n"));
        snprintf(fixture->store.version, sizeof fixture->store.version, "redis 7.0.15");
        assert_non_null(strstr(reply.body, "loop: lag 12.5 ms, stalls 3\n"));
        assert_non_null(strstr(reply.body, "election billing: leader (renewed)\n"));
        assert_non_null(strstr(reply.body, "election mail: follower (held-by-other)\n"));
        assert_non_null(strstr(reply.body, "mail: eviction-policy\n"));
        assert_non_null(strstr(reply.body, "process: listener-exposed\n"));
        reply_free(&reply);
    }
    health_expect(fixture, "GET /readyz?verboses HTTP/1.1" END, 200, "ok\n");
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
}

static void test_leader(void **state) {
    struct health_fixture *fixture = *state;
    health_expect(fixture, "GET /leader HTTP/1.1" END, 503, "");
    health_expect(fixture, "GET /leader/billing HTTP/1.1" END, 503, "");
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
    health_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    int64_t before_ns = clock_now().boot_ns;
    health_expect(fixture, "GET /leader HTTP/1.1" END, 200, "");
    /* Somebody may send work here because of it: promised, so noted. */
    assert_true(fixture->entries[0].handouts.until_ns >= before_ns + 2 * NS_PER_S);
    health_expect(fixture, "HEAD /leader/bill%69ng HTTP/1.1" END, 200, NULL);
    health_set_leader(&fixture->entries[0], -1);
    health_expect(fixture, "GET /leader HTTP/1.1" END, 503, "");
    fixture->board.count = 2;
    health_expect(fixture, "GET /leader HTTP/1.1" END, 400, NULL);
    health_expect(fixture, "GET /leader/mail HTTP/1.1" END, 503, "");
}

static void test_errors(void **state) {
    struct health_fixture *fixture = *state;
    health_expect(fixture, "GET /leader/other HTTP/1.1" END, 404, NULL);
    health_expect(fixture, "GET /leader/ HTTP/1.1" END, 404, NULL);
    health_expect(fixture, "GET /leader/%00 HTTP/1.1" END, 404, NULL);
    health_expect(fixture, "GET /leaders HTTP/1.1" END, 404, NULL);
    health_expect(fixture, "GET / HTTP/1.1" END, 404, NULL);
    health_expect(fixture, "GET /livez/ HTTP/1.1" END, 404, NULL);
    char request[2048];
    snprintf(request, sizeof request, "GET /leader/%0200d HTTP/1.1" END, 0);
    health_expect(fixture, request, 404, NULL);
    snprintf(request, sizeof request, "GET /%01500d HTTP/1.1" END, 0);
    health_expect(fixture, request, 414, NULL);
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(request, sizeof request, "%s /livez HTTP/1.1" END, methods[i]);
        struct reply reply;
        health_ask(fixture, request, &reply);
        assert_int_equal(reply.status, 405);
        assert_string_equal(reply_header(&reply, "Allow"), "GET, HEAD");
        reply_free(&reply);
    }
    assert_int_equal(fixture->counters.api_requests[LISTENER_HEALTH][CODE_404], 7);
    assert_int_equal(fixture->counters.api_requests[LISTENER_HEALTH][CODE_414], 1);
    assert_int_equal(fixture->counters.api_requests[LISTENER_HEALTH][CODE_405], 5);
}

/* The probe has its own door: a crowd at the application's does not reach it. */
static void test_crowd_at_the_api(void **state) {
    struct health_fixture *fixture = *state;
    enum { CLIENTS = 200 };
    const struct listen_address address = {.host = "localhost"};
    const struct http_setup setup = {.loop = &fixture->loop,
                                     .board = &fixture->board,
                                     .counters = &fixture->counters,
                                     .address = &address};
    struct error error = {.text = ""};
    fixture->api = http_create(&setup, &error);
    assert_non_null(fixture->api);
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect("127.0.0.1", http_port(fixture->api));
        assert_true(client_send(&fixture->loop, fds[i], "GET /", (size_t)(i % 6)));
    }
    uint64_t begin_ns = uv_hrtime();
    health_expect(fixture, "GET /livez HTTP/1.1" END, 200, "ok\n");
    assert_true(uv_hrtime() - begin_ns < UINT64_C(1000000000));
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
}

/* Nor does a crowd at its own. */
static void test_crowd_at_the_probe(void **state) {
    struct health_fixture *fixture = *state;
    enum { CLIENTS = 150 };
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect("127.0.0.1", health_port(fixture->health));
    }
    uint64_t begin_ns = uv_hrtime();
    health_expect(fixture, "GET /livez HTTP/1.1" END, 200, "ok\n");
    assert_true(uv_hrtime() - begin_ns < UINT64_C(1000000000));
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, health_setup_fixture, health_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_livez),
        TEST(test_readyz),
        TEST(test_readyz_verbose),
        TEST(test_leader),
        TEST(test_errors),
        TEST(test_crowd_at_the_api),
        TEST(test_crowd_at_the_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
