/* Requests that wait for a change: how they end, and that nobody has to wait for them. */
#include "base/clock.h"
#include "base/log.h"
#include "http_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT 1024

static int ask(struct http_fixture *fixture, const char *method, uint64_t index, const char *wait) {
    char request[256];
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    snprintf(request, sizeof request,
             "%s /v1/elections/billing?index=%llu&wait=%s HTTP/1.1\r\n" HOST, method,
             (unsigned long long)index, wait);
    assert_true(client_send(&fixture->loop, fd, request, strlen(request)));
    return fd;
}

struct wanted {
    struct http_fixture *fixture;
    uint64_t watchers;
};

static bool has_watchers(void *context) {
    struct wanted *wanted = context;
    return wanted->fixture->counters.waiters == wanted->watchers;
}

static void expect_watchers(struct http_fixture *fixture, uint64_t count) {
    struct wanted wanted = {.fixture = fixture, .watchers = count};
    if (!client_run_until(&fixture->loop, has_watchers, &wanted)) {
        fail_msg("%llu watchers instead of %llu", (unsigned long long)fixture->counters.waiters,
                 (unsigned long long)count);
    }
}

static void change(struct http_fixture *fixture) {
    struct view view = fixture->entries[0].view;
    view.index++;
    board_publish(&fixture->board, &fixture->entries[0], &view, true);
}

static void expect_answer(struct http_fixture *fixture, int fd, const char *index) {
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    if (strstr(reply.body, index) == NULL) {
        fail_msg("not %s: %s", index, reply.body);
    }
    assert_null(reply_header(&reply, "Retry-After"));
    reply_free(&reply);
}

static uint64_t answered(const struct http_fixture *fixture) {
    return fixture->counters.api_requests[LISTENER_HTTP][CODE_200];
}

static void a_change_ends_the_wait(void **state) {
    struct http_fixture *fixture = *state;
    int fd = ask(fixture, "GET", 0, "30s");
    expect_watchers(fixture, 1);
    assert_int_equal(answered(fixture), 0);
    change(fixture);
    expect_answer(fixture, fd, "\"index\":1,");
    expect_watchers(fixture, 0);
    assert_int_equal(answered(fixture), 1);
    close(fd);
}

/* A renewal is none, nor is a change of another election. */
static void what_is_no_change(void **state) {
    struct http_fixture *fixture = *state;
    fixture->board.count = 2;
    int fd = ask(fixture, "GET", 0, "30s");
    expect_watchers(fixture, 1);
    struct view view = fixture->entries[0].view;
    board_publish(&fixture->board, &fixture->entries[0], &view, false);
    view = fixture->entries[1].view;
    view.index++;
    board_publish(&fixture->board, &fixture->entries[1], &view, true);
    for (int i = 0; i < 10; i++) {
        client_turn(&fixture->loop, -1);
    }
    assert_int_equal(fixture->counters.waiters, 1);
    change(fixture);
    expect_answer(fixture, fd, "\"index\":1,");
    close(fd);
}

static void another_index_is_answered_at_once(void **state) {
    struct http_fixture *fixture = *state;
    for (int i = 0; i < 2; i++) {
        int fd = ask(fixture, "GET", i == 0 ? 7 : 0, i == 0 ? "30s" : "0s");
        expect_answer(fixture, fd, "\"index\":0,");
        close(fd);
    }
    assert_int_equal(fixture->counters.waiters, 0);
}

static void the_time_is_over(void **state) {
    struct http_fixture *fixture = *state;
    int64_t before_ns = clock_now().boot_ns;
    int later = ask(fixture, "GET", 0, "600ms");
    int sooner = ask(fixture, "GET", 0, "300ms");
    expect_answer(fixture, sooner, "\"index\":0,");
    assert_true(clock_now().boot_ns - before_ns >= 300 * NS_PER_MS);
    expect_answer(fixture, later, "\"index\":0,");
    assert_true(clock_now().boot_ns - before_ns >= 600 * NS_PER_MS);
    expect_watchers(fixture, 0);
    close(sooner);
    close(later);
}

/* The answer is of the moment at which it is given, and counts as given then. */
static void the_answer_is_composed_at_the_end(void **state) {
    struct http_fixture *fixture = *state;
    int fd = ask(fixture, "GET", 0, "30s");
    expect_watchers(fixture, 1);
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
    struct board_entry leading = {.view = {.index = 1}};
    http_set_leader(&leading, 10 * NS_PER_S);
    leading.view.index = 1;
    int64_t before_ns = clock_now().boot_ns;
    board_publish(&fixture->board, &fixture->entries[0], &leading.view, true);
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_string_equal(reply_header(&reply, "Lease-Valid-Ms"), "2000");
    assert_true(fixture->entries[0].handouts.until_ns >= before_ns + 2 * NS_PER_S);
    reply_free(&reply);
    close(fd);
}

static void head_waits_too(void **state) {
    struct http_fixture *fixture = *state;
    int fd = ask(fixture, "HEAD", 0, "30s");
    expect_watchers(fixture, 1);
    change(fixture);
    struct reply reply;
    client_receive(&fixture->loop, fd, true, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.length, 0);
    reply_free(&reply);
    close(fd);
}

/* The same connection, again and again. */
static void one_after_the_other(void **state) {
    struct http_fixture *fixture = *state;
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    for (int i = 0; i < 20; i++) {
        char request[160];
        char wanted[32];
        snprintf(request, sizeof request,
                 "GET /v1/elections/billing?index=%d&wait=30s HTTP/1.1\r\n" HOST, i);
        snprintf(wanted, sizeof wanted, "\"index\":%d,", i + 1);
        assert_true(client_send(&fixture->loop, fd, request, strlen(request)));
        expect_watchers(fixture, 1);
        change(fixture);
        expect_answer(fixture, fd, wanted);
    }
    close(fd);
}

/* Bytes of a next request wait behind the one that is held. */
static void pipelined(void **state) {
    struct http_fixture *fixture = *state;
    int fd = ask(fixture, "GET", 0, "30s");
    static const char next[] = "GET /v1/leader HTTP/1.1\r\n" HOST;
    assert_true(client_send(&fixture->loop, fd, next, sizeof next - 1));
    expect_watchers(fixture, 1);
    change(fixture);
    expect_answer(fixture, fd, "\"index\":1,");
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 503);
    reply_free(&reply);
    close(fd);
}

/* Those who closed the connection cannot be told from those who only send no more: they are
 * answered. Nobody is there after a reset. */
static void those_who_leave_are_forgotten(void **state) {
    struct http_fixture *fixture = *state;
    static const char next[] = "GET /v1/leader HTTP/1.1\r\n" HOST;
    for (int i = 0; i < 3; i++) {
        int fd = ask(fixture, "GET", 0, "30s");
        expect_watchers(fixture, 1);
        if (i == 1) { /* with bytes that nobody has read */
            assert_true(client_send(&fixture->loop, fd, next, sizeof next - 1));
        } else if (i == 2) { /* by a reset */
            struct linger linger = {.l_onoff = 1};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        }
        close(fd);
        expect_watchers(fixture, 0);
    }
    assert_int_equal(answered(fixture), 2);
    change(fixture); /* nothing is left that could be told */
    http_expect_host(fixture, "localhost", 200);
}

static void one_that_sends_no_more_is_answered(void **state) {
    struct http_fixture *fixture = *state;
    int fd = ask(fixture, "GET", 0, "30s");
    expect_watchers(fixture, 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect_answer(fixture, fd, "\"index\":0,");
    assert_true(client_wait_closed(&fixture->loop, fd));
    expect_watchers(fixture, 0);
    close(fd);
}

/* Beyond the cap the answer comes at once, and says to come again. All hear of the change. */
static void a_crowd(void **state) {
    struct http_fixture *fixture = *state;
    static int fds[LIMIT];
    for (int i = 0; i < LIMIT; i++) {
        fds[i] = ask(fixture, "GET", 0, "30s");
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    expect_watchers(fixture, LIMIT);
    int one_more = ask(fixture, "GET", 0, "30s");
    struct reply reply;
    client_receive(&fixture->loop, one_more, false, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Retry-After"), "1");
    reply_free(&reply);
    close(one_more);
    http_expect_host(fixture, "localhost", 200);
    change(fixture);
    for (int i = 0; i < LIMIT; i++) {
        expect_answer(fixture, fds[i], "\"index\":1,");
        close(fds[i]);
    }
    expect_watchers(fixture, 0);
}

/* A change for many is told a few at a time: others are served in between. */
static void a_change_for_many_holds_nobody_up(void **state) {
    struct http_fixture *fixture = *state;
    enum { MANY = 400 };
    static int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = ask(fixture, "GET", 0, "30s");
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    expect_watchers(fixture, MANY);
    change(fixture);
    assert_int_equal(fixture->counters.waiters, MANY); /* the change itself is not held up */
    while (fixture->counters.waiters > 0) {
        uint64_t before = fixture->counters.waiters;
        uv_run(&fixture->loop, UV_RUN_ONCE);
        assert_true(before - fixture->counters.waiters <= 64);
    }
    for (int i = 0; i < MANY; i++) {
        expect_answer(fixture, fds[i], "\"index\":1,");
        close(fds[i]);
    }
}

/* The library ends the process over a suspended connection that is left: none is. */
static void all_are_answered_at_the_end(void **state) {
    struct http_fixture *fixture = *state;
    enum { MANY = 50 };
    int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = ask(fixture, "GET", 0, "30s");
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    expect_watchers(fixture, MANY);
    close(fds[0]); /* this one has just left */
    http_stop(fixture);
    assert_int_equal(fixture->counters.waiters, 0);
    for (int i = 1; i < MANY; i++) {
        struct reply reply;
        client_receive(&fixture->loop, fds[i], false, &reply);
        assert_int_equal(reply.status, 200);
        assert_string_equal(reply_header(&reply, "Connection"), "close");
        reply_free(&reply);
        close(fds[i]);
    }
}

static void wrong_queries(void **state) {
    static const char *const targets[] = {
        "/v1/elections/billing?index=x",
        "/v1/elections/billing?wait=10s",
        "/v1/elections/billing?index=0&w=1",
        "/v1/elections/billing/leader?index=0",
        "/v1/leader?index=0&wait=1s",
        "/v1/elections?index=0&wait=1s",
        "/?index=0&wait=1s",
    };
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS"};
    struct http_fixture *fixture = *state;
    for (size_t i = 0; i < 3 * (sizeof targets / sizeof targets[0]); i++) {
        char request[160];
        struct reply reply;
        snprintf(request, sizeof request, "%s %s HTTP/1.1\r\n" HOST, methods[i % 3],
                 targets[i / 3]);
        http_ask(fixture, request, &reply);
        assert_int_equal(reply.status, 400);
        assert_string_equal(reply_header(&reply, "Content-Type"), "application/problem+json");
        reply_free(&reply);
    }
    struct reply reply;
    http_ask(fixture, "GET /v1/elections/nope?index=0&wait=1s HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 404);
    reply_free(&reply);
    http_ask(fixture, "OPTIONS /v1/elections/billing?index=0&wait=1s HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 204);
    reply_free(&reply);
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_setup_fixture, http_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(a_change_ends_the_wait),
        TEST(what_is_no_change),
        TEST(another_index_is_answered_at_once),
        TEST(the_time_is_over),
        TEST(the_answer_is_composed_at_the_end),
        TEST(head_waits_too),
        TEST(one_after_the_other),
        TEST(pipelined),
        TEST(those_who_leave_are_forgotten),
        TEST(one_that_sends_no_more_is_answered),
        TEST(a_crowd),
        TEST(a_change_for_many_holds_nobody_up),
        TEST(all_are_answered_at_the_end),
        TEST(wrong_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
