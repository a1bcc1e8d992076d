#include "http_kit.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void on_closed(void *context) {
    struct http_fixture *fixture = context;
    fixture->closed = true;
}

static bool is_closed(void *context) {
    return ((struct http_fixture *)context)->closed;
}

void http_set_leader(struct board_entry *entry, int64_t lease_ns) {
    struct instant now = clock_now();
    entry->view.state = STATE_LEADER;
    entry->view.reason = REASON_RENEWED;
    entry->view.token = TOKEN;
    entry->view.valid_for_ns = 2 * NS_PER_S;
    entry->view.lease = (struct lease){.boot_deadline_ns = now.boot_ns + lease_ns,
                                       .real_deadline_ns = now.real_ns + lease_ns};
}

void http_set_follower(struct board_entry *entry, const char *holder) {
    entry->view = (struct view){.state = STATE_FOLLOWER, .reason = REASON_HELD_BY_OTHER};
    snprintf(entry->view.holder, sizeof entry->view.holder, "%s", holder);
}

void http_start(struct http_fixture *fixture) {
    const struct http_setup setup = {.loop = &fixture->loop,
                                     .board = &fixture->board,
                                     .counters = &fixture->counters,
                                     .address = &fixture->address};
    struct error error = {.text = ""};
    fixture->api = http_create(&setup, &error);
    if (fixture->api == NULL) {
        fail_msg("%s", error.text);
    }
}

int http_setup_without_api(void **state) {
    struct http_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    fixture->entries[0].name = "billing";
    fixture->entries[1].name = "mail";
    http_set_follower(&fixture->entries[0], "pod-b");
    http_set_follower(&fixture->entries[1], "pod-c");
    fixture->board = (struct board){.namespace_ = "default",
                                    .identity = "pod-a",
                                    .store_kind = "redis",
                                    .mode = "correctness",
                                    .entries = fixture->entries,
                                    .count = 1};
    fixture->address = (struct listen_address){.host = "localhost"};
    *state = fixture;
    return 0;
}

int http_setup_fixture(void **state) {
    http_setup_without_api(state);
    http_start(*state);
    return 0;
}

void http_stop(struct http_fixture *fixture) {
    http_close(fixture->api, on_closed, fixture);
    fixture->api = NULL;
    assert_true(client_run_until(&fixture->loop, is_closed, fixture));
}

int http_teardown_fixture(void **state) {
    struct http_fixture *fixture = *state;
    if (fixture->api != NULL) {
        http_stop(fixture);
    }
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
    return 0;
}

void http_ask(struct http_fixture *fixture, const char *request, struct reply *reply) {
    client_ask(&fixture->loop, "127.0.0.1", http_port(fixture->api), request, reply);
}

void http_expect_host(struct http_fixture *fixture, const char *host, int status) {
    char request[256];
    snprintf(request, sizeof request, "GET /v1/elections HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    struct reply reply;
    http_ask(fixture, request, &reply);
    if (reply.status != status) {
        fail_msg("%d instead of %d for host %s", reply.status, status, host);
    }
    reply_free(&reply);
}
