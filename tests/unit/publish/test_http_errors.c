#include "base/log.h"
#include "http_kit.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static json_t *parse(const struct reply *reply) {
    json_t *object = json_loads(reply->body, 0, NULL);
    assert_non_null(object);
    return object;
}

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    assert_non_null(text);
    return text;
}

struct error_case {
    const char *request;
    int status;
    const char *title;
    enum counter_code counted;
};

static void expect_problem(struct http_fixture *fixture, const struct error_case *expected) {
    struct reply reply;
    uint64_t *counter = &fixture->counters.api_requests[LISTENER_HTTP][expected->counted];
    uint64_t before = *counter;
    http_ask(fixture, expected->request, &reply);
    if (reply.status != expected->status) {
        fail_msg("%d instead of %d for %s", reply.status, expected->status, expected->request);
    }
    assert_string_equal(reply_header(&reply, "Content-Type"), "application/problem+json");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    assert_null(reply_header(&reply, "Fencing-Token"));
    json_t *object = parse(&reply);
    assert_string_equal(text_of(object, "type"), "about:blank");
    assert_string_equal(text_of(object, "title"), expected->title);
    assert_int_equal(json_integer_value(json_object_get(object, "status")), expected->status);
    assert_true(strlen(text_of(object, "detail")) > 10);
    json_decref(object);
    if (expected->status == 405) {
        assert_string_equal(reply_header(&reply, "Allow"), "GET, HEAD, OPTIONS");
    }
    reply_free(&reply);
    assert_int_equal(*counter, before + 1);
}

#define BAD 400, "Bad Request", CODE_400
#define UNKNOWN 404, "Not Found", CODE_404
#define METHOD 405, "Method Not Allowed", CODE_405
#define MISDIRECTED 421, "Misdirected Request", CODE_421

static void test_errors(void **state) {
    struct http_fixture *fixture = *state;
    http_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    static const struct error_case cases[] = {
        {"GET /v1/elections/other HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/other/leader HTTP/1.1\r\n" HOST, UNKNOWN},
        {"OPTIONS /v1/elections/other/leader HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/bill%69ng%2Fleader HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/%C3%28 HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/billing/ HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/billing/leaders HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections/ HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1/elections//leader HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET //v1/leader HTTP/1.1\r\n" HOST, UNKNOWN},
        {"GET /v1 HTTP/1.1\r\n" HOST, UNKNOWN},
        {"POST /v2 HTTP/1.1\r\nContent-Length: 0\r\n" HOST, UNKNOWN},
        {"POST / HTTP/1.1\r\nContent-Length: 0\r\n" HOST, METHOD},
        {"POST /v1/leader HTTP/1.1\r\nContent-Length: 4\r\n" HOST "body", METHOD},
        {"DELETE /v1/elections/billing HTTP/1.1\r\n" HOST, METHOD},
        {"get /v1/leader HTTP/1.1\r\n" HOST, METHOD},
        {"GET /v1/leader?index=1 HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/elections/billing?x HTTP/1.1\r\n" HOST, BAD},
        {"GET /?& HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/elections/billing%00x HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/elections/%zz HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/elections/billing% HTTP/1.1\r\n" HOST, BAD},
        {"GET http://localhost/v1/leader HTTP/1.1\r\n" HOST, BAD},
        {"GET v1/leader HTTP/1.1\r\n" HOST, BAD},
        {"GET * HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/leader HTTP/1.1\r\n\r\n", BAD},
        {"GET /v1/leader HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", BAD},
        {"GET /v1/leader HTTP/1.1\r\nHost: evil.example\r\n\r\n", MISDIRECTED},
        {"OPTIONS / HTTP/1.1\r\nHost: evil.example\r\n\r\n", MISDIRECTED},
        {"GET /none HTTP/1.0\r\nHost: evil.example\r\n\r\n", MISDIRECTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_problem(fixture, &cases[i]);
    }
    /* No error promises anything. */
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
}

static void test_name_needed(void **state) {
    struct http_fixture *fixture = *state;
    fixture->board.count = 2;
    static const struct error_case cases[] = {
        {"GET / HTTP/1.1\r\n" HOST, BAD},
        {"GET /v1/leader HTTP/1.1\r\n" HOST, BAD},
        {"OPTIONS /v1/leader HTTP/1.1\r\n" HOST, BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_problem(fixture, &cases[i]);
    }
    struct reply reply;
    http_ask(fixture, "GET /v1/elections/mail/leader HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 503);
    reply_free(&reply);
}

static void test_hosts(void **state) {
    struct http_fixture *fixture = *state;
    static const char *const good[] = {"localhost",      "LocalHost:4040",   "127.0.0.1",
                                       "127.0.0.1:4040", "127.9.9.9",        "[::1]",
                                       "[::1]:4040",     "[0:0:0:0:0:0:0:1]"};
    static const char *const bad[] = {"evil.example",
                                      "evil.example:4040",
                                      "",
                                      "localhost.evil",
                                      "localhost:",
                                      "localhost:x",
                                      "127.0.0.1.evil",
                                      "126.0.0.1",
                                      "[::2]",
                                      "[::1",
                                      "[::1]x",
                                      "::1",
                                      "localhost:123456",
                                      "user@localhost",
                                      "127.1",
                                      "[localhost]",
                                      "0.0.0.0",
                                      "localhost.",
                                      "localhost 127.0.0.1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        http_expect_host(fixture, good[i], 200);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        http_expect_host(fixture, bad[i], 421);
    }
    struct reply reply;
    http_ask(fixture, "GET /v1/elections HTTP/1.0\r\n\r\n", &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
}

static void test_long_target(void **state) {
    struct http_fixture *fixture = *state;
    static char request[32 * 1024];
    static const struct { int length, status; } cases[] = {{1024, 404}, {1025, 414}, {8000, 414}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(request, sizeof request, "GET /%0*d HTTP/1.1\r\n" HOST, cases[i].length - 1, 0);
        const struct error_case expected = {request, cases[i].status,
                                            cases[i].status == 404 ? "Not Found" : "URI Too Long",
                                            cases[i].status == 404 ? CODE_404 : CODE_414};
        expect_problem(fixture, &expected);
    }
    /* So long a name is nobody's. */
    snprintf(request, sizeof request, "GET /v1/elections/%0101d HTTP/1.1\r\n" HOST, 0);
    const struct error_case long_name = {request, UNKNOWN};
    expect_problem(fixture, &long_name);
    snprintf(request, sizeof request, "GET /v1/elections/%0900d/leader HTTP/1.1\r\n" HOST, 0);
    expect_problem(fixture, &long_name);
    /* A query counts too. */
    snprintf(request, sizeof request, "GET /?%02000d HTTP/1.1\r\n" HOST, 0);
    const struct error_case expected = {request, 414, "URI Too Long", CODE_414};
    expect_problem(fixture, &expected);
    /* Over the memory of a connection the library answers by itself. */
    snprintf(request, sizeof request, "GET /%020000d HTTP/1.1\r\n" HOST, 0);
    struct reply reply;
    http_ask(fixture, request, &reply);
    assert_true(reply.status == 414 || (reply.status == 0 && reply.closed));
    reply_free(&reply);
    http_expect_host(fixture, "localhost", 200);
}

static void test_oversized_headers(void **state) {
    struct http_fixture *fixture = *state;
    static char request[128 * 1024];
    int length = snprintf(request, sizeof request, "GET /v1/elections HTTP/1.1\r\n");
    for (int i = 0; length < 100 * 1024; i++) {
        length += snprintf(request + length, 128, "X-Header-%d: %0100d\r\n", i, 0);
    }
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    client_send(&fixture->loop, fd, request, (size_t)length);
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_true(reply.status == 431 || reply.status == 413 || reply.closed);
    reply_free(&reply);
    close(fd);
    http_expect_host(fixture, "localhost", 200);
}

/* Bodies mean nothing: a small one is thrown away, a big one is not even read. */
static void test_bodies(void **state) {
    struct http_fixture *fixture = *state;
    static char request[1024 * 1024];
    int head = snprintf(request, sizeof request,
                        "GET /v1/elections HTTP/1.1\r\nContent-Length: 1000\r\n" HOST);
    memset(request + head, 'x', 1000);
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    struct reply reply;
    for (int i = 0; i < 2; i++) {
        assert_true(client_send(&fixture->loop, fd, request, (size_t)head + 1000));
        client_receive(&fixture->loop, fd, false, &reply);
        assert_int_equal(reply.status, 200);
        reply_free(&reply);
    }
    close(fd);

    memset(request, 'x', sizeof request);
    head = snprintf(request, sizeof request,
                    "GET /v1/elections HTTP/1.1\r\nContent-Length: 100000000\r\n" HOST);
    request[head] = 'x';
    fd = client_connect("127.0.0.1", http_port(fixture->api));
    bool open = true;
    for (int i = 0; open && i < 100; i++) {
        open = client_send(&fixture->loop, fd, request, sizeof request);
    }
    assert_false(open);
    close(fd);
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_200], 2);
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_setup_fixture, http_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_errors),      TEST(test_name_needed),       TEST(test_hosts),
        TEST(test_long_target), TEST(test_oversized_headers), TEST(test_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
