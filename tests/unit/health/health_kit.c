#include "health_kit.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void on_closed(void *context) {
    struct health_fixture *fixture = context;
    fixture->closed++;
}

static bool is_closed(void *context) {
    return ((struct health_fixture *)context)->closed > 0;
}

void health_set_leader(struct board_entry *entry, int64_t lease_ns) {
    struct instant now = clock_now();
    entry->view.state = STATE_LEADER;
    entry->view.reason = REASON_RENEWED;
    entry->view.token = TOKEN;
    entry->view.valid_for_ns = 2 * NS_PER_S;
    entry->view.lease = (struct lease){.boot_deadline_ns = now.boot_ns + lease_ns,
                                       .real_deadline_ns = now.real_ns + lease_ns};
}

int health_setup_fixture(void **state) {
    struct health_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    fixture->entries[0].name = "billing";
    fixture->entries[1].name = "mail";
    for (int i = 0; i < 2; i++) {
        fixture->entries[i].view.state = STATE_FOLLOWER;
        fixture->entries[i].view.reason = REASON_HELD_BY_OTHER;
    }
    fixture->counters.elections = fixture->election_counters;
    fixture->board = (struct board){.namespace_ = "default",
                                    .identity = "pod-a",
                                    .store_kind = "redis",
                                    .mode = "correctness",
                                    .entries = fixture->entries,
                                    .count = 1};
    const struct health_setup setup = {.loop = &fixture->loop,
                                       .board = &fixture->board,
                                       .counters = &fixture->counters,
                                       .own_counters = &fixture->counters,
                                       .store = &fixture->store,
                                       .address = &fixture->address};
    struct error error = {.text = ""};
    fixture->health = health_create(&setup, &error);
    if (fixture->health == NULL) {
        fail_msg("%s", error.text);
    }
    *state = fixture;
    return 0;
}

int health_teardown_fixture(void **state) {
    struct health_fixture *fixture = *state;
    health_close(fixture->health, on_closed, fixture);
    assert_true(client_run_until(&fixture->loop, is_closed, fixture));
    if (fixture->api != NULL) {
        http_close(fixture->api, on_closed, fixture);
    }
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(fixture->closed, fixture->api != NULL ? 2 : 1);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    size_t count = sizeof fixture->election_counters / sizeof fixture->election_counters[0];
    for (size_t i = 0; i < count; i++) {
        counters_finish(&fixture->election_counters[i]);
    }
    free(fixture);
    return 0;
}

void health_ask(struct health_fixture *fixture, const char *request, struct reply *reply) {
    client_ask(&fixture->loop, "127.0.0.1", health_port(fixture->health), request, reply);
}

void health_expect(struct health_fixture *fixture, const char *request, int status,
                   const char *body) {
    struct reply reply;
    health_ask(fixture, request, &reply);
    if (reply.status != status) {
        fail_msg("%d instead of %d for %s", reply.status, status, request);
    }
    assert_string_equal(reply_header(&reply, "Connection"), "close");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    if (body != NULL) {
        assert_string_equal(reply.body, body);
    }
    reply_free(&reply);
}
