#include "base/clock.h"
#include "base/log.h"
#include "http_kit.h"

#include <jansson.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

static void test_follower(void **state) {
    struct http_fixture *fixture = *state;
    struct reply reply;
    http_ask(fixture, "GET /v1/elections/billing HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    assert_null(reply_header(&reply, "Fencing-Token"));
    assert_null(reply_header(&reply, "Lease-Valid-Ms"));
    json_t *object = parse(&reply);
    assert_string_equal(text_of(object, "state"), "follower");
    assert_string_equal(text_of(object, "holder"), "pod-b");
    assert_true(json_is_null(json_object_get(object, "token")));
    json_decref(object);
    reply_free(&reply);
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_200], 1);
}

/* What is promised is noted, and is no longer than what the reader was told. */
static void test_leader(void **state) {
    struct http_fixture *fixture = *state;
    http_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    struct reply reply;
    int64_t before_ns = clock_now().boot_ns;
    http_ask(fixture, "GET /v1/elections/billing HTTP/1.1\r\n" HOST, &reply);
    int64_t after_ns = clock_now().boot_ns;
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Fencing-Token"), "1796157414879");
    assert_string_equal(reply_header(&reply, "Lease-Valid-Ms"), "2000");
    json_t *object = parse(&reply);
    assert_true(json_is_true(json_object_get(object, "leader")));
    assert_int_equal(json_integer_value(json_object_get(object, "token")), TOKEN);
    assert_int_equal(json_integer_value(json_object_get(object, "valid_for_ms")), 2000);
    json_decref(object);
    reply_free(&reply);
    assert_in_range(fixture->entries[0].handouts.until_ns, before_ns + 2 * NS_PER_S,
                    after_ns + 2 * NS_PER_S);
}

/* The clock decides when the reply is composed, whatever was published before. */
static void test_lease_over(void **state) {
    struct http_fixture *fixture = *state;
    http_set_leader(&fixture->entries[0], -1);
    struct reply reply;
    http_ask(fixture, "GET /v1/leader HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 503);
    assert_null(reply_header(&reply, "Fencing-Token"));
    json_t *object = parse(&reply);
    assert_string_equal(text_of(object, "state"), "unknown");
    json_decref(object);
    reply_free(&reply);
}

static void test_leader_routes(void **state) {
    struct http_fixture *fixture = *state;
    static const char *const paths[] = {"/v1/elections/billing/leader", "/v1/leader"};
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS"};
    for (int i = 0; i < 12; i++) {
        bool leads = i >= 6;
        const char *method = methods[i % 3];
        if (leads) {
            http_set_leader(&fixture->entries[0], 10 * NS_PER_S);
            fixture->entries[0].handouts.until_ns = 0;
        }
        char request[256];
        snprintf(request, sizeof request, "%s %s HTTP/1.1\r\n" HOST, method, paths[i / 3 % 2]);
        struct reply reply;
        http_ask(fixture, request, &reply);
        assert_int_equal(reply.status, leads ? 200 : 503);
        assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
        assert_true((reply_header(&reply, "Fencing-Token") != NULL) == leads);
        assert_true((fixture->entries[0].handouts.until_ns != 0) == leads);
        assert_true((reply_header(&reply, "Allow") != NULL) == (strcmp(method, "OPTIONS") == 0));
        if (strcmp(method, "HEAD") != 0) {
            json_t *object = parse(&reply);
            assert_string_equal(text_of(object, "election"), "billing");
            json_decref(object);
        }
        reply_free(&reply);
    }
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_200], 6);
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_503], 6);
}

/* A HEAD has the length but not the body: the next reply follows at once. */
static void test_head_has_no_body(void **state) {
    struct http_fixture *fixture = *state;
    const char *head = "HEAD /v1/elections/billing HTTP/1.1\r\n" HOST;
    const char *get = "GET /v1/elections/billing HTTP/1.1\r\n" HOST;
    int fd = client_connect("127.0.0.1", http_port(fixture->api));
    struct reply first, second;
    assert_true(client_send(&fixture->loop, fd, head, strlen(head)));
    client_receive(&fixture->loop, fd, true, &first);
    assert_true(client_send(&fixture->loop, fd, get, strlen(get)));
    client_receive(&fixture->loop, fd, false, &second);
    assert_int_equal(first.status, 200);
    assert_int_equal(second.status, 200);
    assert_int_equal(strtoul(reply_header(&first, "Content-Length"), NULL, 10), second.length);
    assert_true(second.length > 100);
    reply_free(&second);
    close(fd);
}

static void test_options(void **state) {
    struct http_fixture *fixture = *state;
    static const char *const requests[] = {"OPTIONS / HTTP/1.1\r\n" HOST,
                                           "OPTIONS * HTTP/1.1\r\n" HOST,
                                           "OPTIONS /v1/elections HTTP/1.1\r\n" HOST,
                                           "OPTIONS /v1/elections/billing HTTP/1.1\r\n" HOST};
    for (size_t i = 0; i < 4; i++) {
        struct reply reply;
        http_ask(fixture, requests[i], &reply);
        assert_int_equal(reply.status, 204);
        assert_string_equal(reply_header(&reply, "Allow"), "GET, HEAD, OPTIONS");
        assert_null(reply_header(&reply, "Content-Length"));
        reply_free(&reply);
    }
    assert_int_equal(fixture->counters.api_requests[LISTENER_HTTP][CODE_204], 4);
}

static void expect_name(struct http_fixture *fixture, const char *body) {
    struct reply reply;
    http_ask(fixture, "GET / HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
    assert_string_equal(reply.body, body);
    reply_free(&reply);
}

/* Old clients compare the name with their own. */
static void test_name(void **state) {
    struct http_fixture *fixture = *state;
    expect_name(fixture, "{\"name\":\"pod-b\"}");
    fixture->entries[0].view.state = STATE_PENDING;
    expect_name(fixture, "{\"name\":\"\"}");
    http_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    expect_name(fixture, "{\"name\":\"pod-a\"}");
    assert_true(fixture->entries[0].handouts.until_ns > clock_now().boot_ns);
    http_set_leader(&fixture->entries[0], -1);
    expect_name(fixture, "{\"name\":\"\"}");
}

static void test_list(void **state) {
    struct http_fixture *fixture = *state;
    fixture->board.count = 2;
    http_set_leader(&fixture->entries[1], 10 * NS_PER_S);
    struct reply reply;
    http_ask(fixture, "GET /v1/elections? HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
    json_t *object = parse(&reply);
    const json_t *list = json_object_get(object, "elections");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_of(json_array_get(list, 0), "election"), "billing");
    assert_string_equal(text_of(json_array_get(list, 1), "election"), "mail");
    json_decref(object);
    reply_free(&reply);
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
    assert_true(fixture->entries[1].handouts.until_ns != 0);
}

static void test_encoded_name(void **state) {
    struct http_fixture *fixture = *state;
    struct reply reply;
    http_ask(fixture, "GET /v1/elections/b%69lling HTTP/1.1\r\n" HOST, &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
}

static void test_both_loopbacks(void **state) {
    struct http_fixture *fixture = *state;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool has_v6 =
        probe >= 0 && bind(probe, (const struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (probe >= 0) {
        close(probe);
    }
    if (!has_v6) {
        print_message("no IPv6 on this host\n");
        skip();
    }
    struct reply reply;
    client_ask(&fixture->loop, "::1", http_port(fixture->api),
               "GET /v1/elections HTTP/1.1\r\nHost: [::1]\r\n\r\n", &reply);
    assert_int_equal(reply.status, 200);
    reply_free(&reply);
    assert_int_equal(fixture->board.process_warnings, 0);
}

static void test_exposed_listener(void **state) {
    struct http_fixture *fixture = *state;
    fixture->address = (struct listen_address){.host = ""};
    http_start(fixture);
    assert_int_equal(fixture->board.process_warnings, WARNING_LISTENER_EXPOSED);
    http_expect_host(fixture, "gavel.example", 200);
    struct reply reply;
    http_ask(fixture, "GET /v1/elections/billing HTTP/1.1\r\n" HOST, &reply);
    assert_non_null(strstr(reply.body, "\"listener-exposed\""));
    reply_free(&reply);
}

static void test_bad_address(void **state) {
    struct http_fixture *fixture = *state;
    const struct listen_address address = {.host = "nowhere.example", .port = 4040};
    const struct http_setup setup = {.loop = &fixture->loop,
                                     .board = &fixture->board,
                                     .counters = &fixture->counters,
                                     .address = &address};
    struct error error = {.text = ""};
    assert_null(http_create(&setup, &error));
    assert_non_null(strstr(error.text, "--http: \"nowhere.example\""));
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_setup_fixture, http_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_follower),
        TEST(test_leader),
        TEST(test_lease_over),
        TEST(test_leader_routes),
        TEST(test_head_has_no_body),
        TEST(test_options),
        TEST(test_name),
        TEST(test_list),
        TEST(test_encoded_name),
        TEST(test_both_loopbacks),
        cmocka_unit_test_setup_teardown(test_exposed_listener, http_setup_without_api,
                                        http_teardown_fixture),
        cmocka_unit_test_setup_teardown(test_bad_address, http_setup_without_api,
                                        http_teardown_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
