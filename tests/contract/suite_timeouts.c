/* A store that does not answer: the time is kept, and what happened is found out later. */
#include "bench.h"

#include "base/clock.h"

#include <string.h>

#define SHORT_NS (300 * NS_PER_MS)
/* Room for a busy machine; far below BENCH_TIMEOUT_NS and the watchdog. */
#define GRACE_NS (2 * NS_PER_S)

/* Issues with a short timeout while the store is frozen; must be unsure, in time. */
static void times_out(struct client *client, enum store_event_type type,
                      struct store_request request) {
    request.timeout_ns = SHORT_NS;
    int64_t start_ns = clock_now().boot_ns;
    const struct store_reply *reply = client_expect(client, type, &request, OUTCOME_UNSURE);
    int64_t took_ns = clock_now().boot_ns - start_ns;

    assert_int_equal(reply->reason, REASON_STORE_UNREACHABLE);
    assert_true(took_ns >= SHORT_NS - 5 * NS_PER_MS);
    assert_true(took_ns < SHORT_NS + GRACE_NS);
    assert_false(client->status.up);
    assert_string_not_equal(client->status.problem, "");
}

/* Repeats until the store answers again, as the core does. */
static const struct store_reply *until_answered(struct client *client, enum store_event_type type,
                                                const struct store_request *request) {
    for (int i = 0; i < 10; i++) {
        const struct store_event *event = client_do(client, type, request);
        if (event->reply.outcome != OUTCOME_UNSURE) {
            assert_true(client->status.up);
            return &event->reply;
        }
    }
    fail_msg("no answer after the store was back");
    return NULL;
}

static void acquire_times_out(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    struct store_request request = request_new(bench, 0);
    bench_freeze(bench);
    times_out(client, STORE_ACQUIRED, request);
    times_out(client, STORE_ACQUIRED, request);
    bench_thaw(bench);

    /* Whatever became of the lost ones, the retry finds the one grant. */
    const struct store_reply *reply = until_answered(client, STORE_ACQUIRED, &request);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_NONE);
    struct store_request other = request_new(bench, 0);
    reply = until_answered(&bench->clients[1], STORE_ACQUIRED, &other);
    assert_int_equal(reply->outcome, OUTCOME_NO);
    client_give(client, &request, true);
}

static void acquire_that_was_given_up_blocks_nobody(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    struct store_request lost = request_new(bench, 0);
    bench_freeze(bench);
    times_out(client, STORE_ACQUIRED, lost);
    bench_thaw(bench);

    /* The core gives back what it gave up, under its own name; again where the lost request came
     * even later than that. */
    const struct store_reply *reply = NULL;
    for (int i = 0; i < 10 && (reply == NULL || reply->outcome != OUTCOME_YES); i++) {
        until_answered(client, STORE_RELEASED, &lost);
        struct store_request other = request_new(bench, 0);
        reply = until_answered(&bench->clients[1], STORE_ACQUIRED, &other);
    }
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_int_not_equal(reply->prior, PRIOR_CLEAN);
}

static void renewal_times_out(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    uint64_t token = 0;
    struct store_request taken = client_take(client, 0, &token);
    struct store_request renewal = request_again(&taken);
    bench_freeze(bench);
    times_out(client, STORE_RENEWED, renewal);
    times_out(client, STORE_RENEWED, renewal);
    bench_thaw(bench);

    const struct store_reply *reply = until_answered(client, STORE_RENEWED, &renewal);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_true(reply->token == token);
}

static void raise_times_out(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    uint64_t token = 0;
    struct store_request taken = client_take(client, 0, &token);
    struct store_request raise = request_again(&taken);
    raise.raise_token = true;
    raise.seen_token = token;
    bench_freeze(bench);
    times_out(client, STORE_RENEWED, raise);
    bench_thaw(bench);

    const struct store_reply *reply = until_answered(client, STORE_RENEWED, &raise);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_true(reply->token > token);
}

static void release_times_out(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    struct store_request taken = client_take(client, 0, NULL);
    struct store_request release = request_again(&taken);
    release.clean = true;
    bench_freeze(bench);
    times_out(client, STORE_RELEASED, release);
    bench_thaw(bench);

    until_answered(client, STORE_RELEASED, &release); /* yes, or no if the first one arrived */
    struct store_request other = request_new(bench, 0);
    const struct store_reply *reply = until_answered(&bench->clients[1], STORE_ACQUIRED, &other);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_CLEAN);
}

static void closed_while_frozen(void **state) {
    struct bench *bench = *state;
    if (contract_subject.freeze == NULL) {
        return;
    }
    struct store_request request = request_new(bench, 0);
    struct store_request late = request_new(bench, 1);
    late.timeout_ns = SHORT_NS;
    bench_freeze(bench);
    client_issue(&bench->clients[0], STORE_ACQUIRED, &request);
    client_issue(&bench->clients[0], STORE_ACQUIRED, &late);
    client_issue(&bench->clients[1], STORE_ACQUIRED, &late);
    bench_run(bench, SHORT_NS / 2, NULL);
    client_start_close(&bench->clients[0]);
    client_start_close(&bench->clients[1]);
    bench_run(bench, 2 * SHORT_NS, NULL); /* past the timeout: no event must come */
    bench_check(bench);
    bench_thaw(bench);
    client_close(&bench->clients[0]);
    client_close(&bench->clients[1]);
}

static void elections_time_out_apart(void **state) {
    struct bench *bench = *state;
    struct client *client = &bench->clients[0];
    if (contract_subject.freeze == NULL) {
        return;
    }
    struct store_request quick = request_new(bench, 0);
    struct store_request patient = request_new(bench, 1);
    quick.timeout_ns = SHORT_NS;
    bench_freeze(bench);
    client_issue(client, STORE_ACQUIRED, &patient);
    client_issue(client, STORE_ACQUIRED, &quick);
    for (int i = 0; i < 100 && client->pending[0]; i++) {
        bench_run(bench, (SHORT_NS + GRACE_NS) / 100, NULL);
    }
    bench_check(bench);
    assert_false(client->pending[0]);
    assert_true(client->pending[1] || client->events[1].reply.outcome == OUTCOME_UNSURE);
    assert_int_equal(client->events[0].reply.outcome, OUTCOME_UNSURE);
    bench_thaw(bench);
    client_wait(client);
}

int contract_timeouts(void) {
    const struct CMUnitTest tests[] = {
        BENCH_TEST(acquire_times_out),        BENCH_TEST(acquire_that_was_given_up_blocks_nobody),
        BENCH_TEST(renewal_times_out),        BENCH_TEST(raise_times_out),
        BENCH_TEST(release_times_out),        BENCH_TEST(closed_while_frozen),
        BENCH_TEST(elections_time_out_apart),
    };
    return cmocka_run_group_tests_name("timeouts", tests, NULL, NULL);
}
