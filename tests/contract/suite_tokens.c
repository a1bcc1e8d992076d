/* The one rule: max(recorded + 1, seen + 1, the store's clock in ms, the floor). */
#include "bench.h"

#include "base/clock.h"

#include <string.h>

#define FLOOR UINT64_C(50000000000000)

static uint64_t take_seen(struct client *client, uint64_t seen, struct store_request *taken) {
    *taken = request_new(client->bench, 0);
    taken->seen_token = seen;
    const struct store_reply *reply = client_expect(client, STORE_ACQUIRED, taken, OUTCOME_YES);
    taken->token = reply->token;
    memcpy(taken->server, reply->server, sizeof taken->server);
    return taken->token;
}

static void token_is_not_below_the_clock(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    int64_t before_ms = clock_now().real_ns / NS_PER_MS;
    client_take(&bench->clients[0], 0, &token);
    int64_t after_ms = clock_now().real_ns / NS_PER_MS;
    assert_true((int64_t)token >= before_ms - 1000);
    assert_true((int64_t)token <= after_ms + 1000);
}

static void token_is_above_what_was_seen(void **state) {
    struct bench *bench = *state;
    struct store_request taken;
    assert_true(take_seen(&bench->clients[0], FLOOR, &taken) == FLOOR + 1);
}

static void floor_setup(struct store_setup *setup) {
    setup->token_floor = FLOOR;
}

static void token_is_not_below_the_floor(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    client_take(client_open(bench, 2, floor_setup), 0, &token);
    assert_true(token == FLOOR);
}

static void tokens_rise(void **state) {
    struct bench *bench = *state;
    uint64_t last = 0;

    for (unsigned i = 0; i < 20; i++) {
        struct client *client = &bench->clients[i % 2];
        uint64_t token = 0;
        struct store_request taken = client_take(client, 0, &token);
        assert_true(token > last);
        last = token;
        client_give(client, &taken, i % 3 == 0);
    }
}

static void tokens_rise_above_the_record(void **state) {
    struct bench *bench = *state;
    struct store_request taken;
    uint64_t first = take_seen(&bench->clients[0], FLOOR, &taken);
    client_give(&bench->clients[0], &taken, true);

    /* The other one has seen nothing, and the clock is far behind. */
    uint64_t second = take_seen(&bench->clients[1], 0, &taken);
    assert_true(second == first + 1);
    client_give(&bench->clients[1], &taken, false);
    assert_true(take_seen(&bench->clients[0], 0, &taken) == second + 1);
}

static void raise_mints_anew(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);

    struct store_request raise = request_again(&taken);
    raise.raise_token = true;
    raise.seen_token = token;
    uint64_t raised = client_expect(&bench->clients[0], STORE_RENEWED, &raise, OUTCOME_YES)->token;
    assert_true(raised > token);
    raise.seen_token = FLOOR;
    raised = client_expect(&bench->clients[0], STORE_RENEWED, &raise, OUTCOME_YES)->token;
    assert_true(raised == FLOOR + 1);

    /* It is the grant's token from now on, for the holder and for those who look. */
    struct store_request plain = request_again(&taken);
    assert_true(client_expect(&bench->clients[0], STORE_RENEWED, &plain, OUTCOME_YES)->token ==
                raised);
    struct store_request look = request_new(bench, 0);
    look.take = false;
    assert_true(client_expect(&bench->clients[1], STORE_ACQUIRED, &look, OUTCOME_NO)->token ==
                raised);
    taken.token = raised;
    client_give(&bench->clients[0], &taken, true);
    assert_true(take_seen(&bench->clients[1], 0, &taken) == raised + 1);
    assert_int_equal(bench->clients[1].events[0].reply.prior, PRIOR_CLEAN);
}

static void raise_by_another_is_refused(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);
    struct store_request foreign = request_new(bench, 0);
    foreign.raise_token = true;
    client_expect(&bench->clients[1], STORE_RENEWED, &foreign, OUTCOME_NO);

    struct store_request plain = request_again(&taken);
    assert_true(client_expect(&bench->clients[0], STORE_RENEWED, &plain, OUTCOME_YES)->token ==
                token);
}

static void token_that_is_too_large_is_refused(void **state) {
    struct bench *bench = *state;
    struct store_request request = request_new(bench, 0);
    request.seen_token = TOKEN_MAX;
    const struct store_event *event = client_do(&bench->clients[0], STORE_ACQUIRED, &request);
    assert_int_not_equal(event->reply.outcome, OUTCOME_YES);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_string_not_equal(event->text, "");

    /* It took nothing and spoiled nothing; the largest there is can still be had. */
    struct store_request taken;
    assert_true(take_seen(&bench->clients[1], TOKEN_MAX - 1, &taken) == TOKEN_MAX);

    struct store_request raise = request_again(&taken);
    raise.raise_token = true;
    event = client_do(&bench->clients[1], STORE_RENEWED, &raise);
    assert_int_not_equal(event->reply.outcome, OUTCOME_YES);
    assert_string_not_equal(event->text, "");
}

int contract_tokens(void) {
    const struct CMUnitTest tests[] = {
        BENCH_TEST(token_is_not_below_the_clock), BENCH_TEST(token_is_above_what_was_seen),
        BENCH_TEST(token_is_not_below_the_floor), BENCH_TEST(tokens_rise),
        BENCH_TEST(tokens_rise_above_the_record), BENCH_TEST(raise_mints_anew),
        BENCH_TEST(raise_by_another_is_refused),  BENCH_TEST(token_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
