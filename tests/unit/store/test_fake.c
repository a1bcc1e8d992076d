/* The knobs of the fake store, which the tests of the process turn; the contract suite tests the
 * rest of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "store/fake/fake.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_NS (10 * NS_PER_S)

struct desk {
    uv_loop_t loop;
    struct fake_server *server;
    struct store_setup setup;
    struct store_status status;
    struct store *store;
    struct store_event event;
    unsigned answers, losts;
    int64_t timeout_ns; /* of the next requests */
};

static void on_event(void *context, const struct store_event *event) {
    struct desk *desk = context;
    if (event->type == STORE_LOST) {
        desk->losts++;
    } else if (event->type != STORE_WAKE) {
        desk->event = *event;
        desk->answers++;
    }
}

static void on_closed(void *context) {
    struct desk *desk = context;
    desk->store = NULL;
}

static int setup(void **state) {
    static const char *const names[] = {"a", "b"};
    struct desk *desk = calloc(1, sizeof *desk);
    struct error error = {""};
    assert_non_null(desk);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    desk->server = fake_server_create("desk");
    desk->timeout_ns = 100 * NS_PER_MS;
    desk->setup = (struct store_setup){.loop = &desk->loop,
                                       .url = "fake:desk",
                                       .namespace_ = "ns",
                                       .identity = "one",
                                       .elections = names,
                                       .election_count = 2,
                                       .ttl_ns = TTL_NS,
                                       .status = &desk->status,
                                       .on_event = on_event,
                                       .context = desk};
    desk->store = fake_store_ops.open(&desk->setup, &error);
    assert_non_null(desk->store);
    *state = desk;
    return 0;
}

static int teardown(void **state) {
    struct desk *desk = *state;
    fake_store_ops.close(desk->store, on_closed, desk);
    uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_null(desk->store);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
    fake_server_destroy(desk->server);
    free(desk);
    return 0;
}

static const struct store_reply *acquire(struct desk *desk, unsigned char nonce) {
    struct store_request asked = {
        .nonce = {nonce}, .take = true, .wait_ns = TTL_NS, .timeout_ns = desk->timeout_ns};
    unsigned before = desk->answers;
    fake_store_ops.acquire(desk->store, &asked);
    while (desk->answers == before) {
        uv_run(&desk->loop, UV_RUN_ONCE);
    }
    return &desk->event.reply;
}

static void lost_request_changes_nothing(void **state) {
    struct desk *desk = *state;
    desk->server->fault = FAKE_LOSE_REQUEST;
    desk->server->fault_count = 1;
    assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_UNSURE);
    assert_int_equal(desk->event.reply.reason, REASON_STORE_UNREACHABLE);
    assert_false(fake_server_lock(desk->server, "ns", "a")->held);
    assert_int_equal(acquire(desk, 2)->outcome, OUTCOME_YES);
}

static void lost_reply_has_changed_something(void **state) {
    struct desk *desk = *state;
    desk->server->fault = FAKE_LOSE_REPLY;
    desk->server->fault_count = 1;
    assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_UNSURE);
    assert_true(fake_server_lock(desk->server, "ns", "a")->held);
    assert_int_equal(acquire(desk, 2)->outcome, OUTCOME_NO);
    assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_YES);
}

static void refusal_comes_at_once(void **state) {
    struct desk *desk = *state;
    desk->server->fault = FAKE_REFUSE;
    desk->server->fault_count = UINT_MAX;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_UNSURE);
        assert_int_equal(desk->event.reply.reason, REASON_STORE_REFUSED);
    }
    desk->server->fault = FAKE_FINE;
    assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_YES);
}

static void delays_are_kept_and_a_late_request_is_carried_out(void **state) {
    struct desk *desk = *state;
    desk->server->request_delay_ns = 20 * NS_PER_MS;
    desk->server->reply_delay_ns = 30 * NS_PER_MS;
    desk->timeout_ns = 5 * NS_PER_S;
    int64_t start_ns = clock_now().boot_ns;
    assert_int_equal(acquire(desk, 1)->outcome, OUTCOME_YES);
    assert_true(clock_now().boot_ns - start_ns >= 48 * NS_PER_MS);
    assert_true(clock_now().boot_ns - desk->event.reply.sent.boot_ns >= 48 * NS_PER_MS);

    fake_server_forget(desk->server);
    desk->timeout_ns = 100 * NS_PER_MS;
    desk->server->request_delay_ns = 200 * NS_PER_MS; /* twice the timeout */
    assert_int_equal(acquire(desk, 2)->outcome, OUTCOME_UNSURE);
    assert_false(fake_server_lock(desk->server, "ns", "a")->held);
    unsigned arrived = desk->server->requests;
    while (desk->server->requests == arrived) {
        uv_run(&desk->loop, UV_RUN_ONCE);
    }
    assert_true(fake_server_lock(desk->server, "ns", "a")->held);
    assert_int_equal(desk->answers, 2);
}

static void priors_follow_the_record(void **state) {
    struct desk *desk = *state;
    struct fake_lock *lock = fake_server_lock(desk->server, "ns", "a");
    assert_int_equal(acquire(desk, 1)->doubt, DOUBT_NO_RECORD);
    int64_t end_us = lock->end_us;
    assert_true(end_us >= desk->event.reply.server_now_us + INT64_C(9000000));

    lock->held = false;
    assert_int_equal(acquire(desk, 2)->prior, PRIOR_END);
    assert_true(desk->event.reply.prior_end_us == end_us);
    assert_int_equal(acquire(desk, 2)->prior, PRIOR_NONE); /* the retry */

    lock->held = false;
    snprintf(desk->server->id, sizeof desk->server->id, "run-2:desk");
    assert_int_equal(acquire(desk, 3)->doubt, DOUBT_OTHER_SERVER);
}

static void clock_and_warnings_are_the_servers(void **state) {
    struct desk *desk = *state;
    desk->server->clock_offset_us = INT64_C(3600000000);
    desk->server->warnings = WARNING_EVICTION_POLICY;
    const struct store_reply *reply = acquire(desk, 1);
    int64_t ahead_us = reply->server_now_us - clock_now().real_ns / NS_PER_US;
    assert_true(ahead_us > INT64_C(3590000000) && ahead_us < INT64_C(3610000000));
    assert_int_equal(reply->warnings, WARNING_EVICTION_POLICY);
    assert_string_equal(reply->server, desk->server->id);
    assert_true(reply->token >= (uint64_t)(reply->server_now_us / 1000));
}

static void lost_locks_are_told(void **state) {
    struct desk *desk = *state;
    acquire(desk, 1);
    fake_server_lose(desk->server, "ns", "a");
    assert_int_equal(desk->losts, 0);
    while (desk->losts == 0) {
        uv_run(&desk->loop, UV_RUN_ONCE);
    }
    assert_int_equal(desk->losts, 1);
}

static void unknown_server_is_an_error(void **state) {
    struct desk *desk = *state;
    struct store_setup other = desk->setup;
    struct error error = {""};
    other.url = "fake:nowhere";
    assert_null(fake_store_ops.open(&other, &error));
    assert_string_not_equal(error.text, "");
    assert_false(fake_store_ops.check("fake:", &error));
}

int main(void) {
#define DESK_TEST(function) cmocka_unit_test_setup_teardown((function), setup, teardown)
    const struct CMUnitTest tests[] = {
        DESK_TEST(lost_request_changes_nothing),
        DESK_TEST(lost_reply_has_changed_something),
        DESK_TEST(refusal_comes_at_once),
        DESK_TEST(delays_are_kept_and_a_late_request_is_carried_out),
        DESK_TEST(priors_follow_the_record),
        DESK_TEST(clock_and_warnings_are_the_servers),
        DESK_TEST(lost_locks_are_told),
        DESK_TEST(unknown_server_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
