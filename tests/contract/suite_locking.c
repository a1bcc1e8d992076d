/* Who gets the lock, who is told what about it, and who may give it back. */
#include "base/clock.h"
#include "bench.h"

#include <string.h>

static void free_lock_is_given(void **state) {
    struct bench *bench = *state;
    struct store_request request = request_new(bench, 0);

    const struct store_reply *reply =
        client_expect(&bench->clients[0], STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_true(reply->longest_ttl_ns >= BENCH_TTL_NS);
    assert_int_equal(reply->prior, PRIOR_NONE); /* nothing was ever recorded here */
    assert_int_equal(reply->doubt, DOUBT_NO_RECORD);
}

static void second_store_is_shown_the_holder(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);
    struct store_request request = request_new(bench, 0);

    const struct store_reply *reply =
        client_expect(&bench->clients[1], STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_true(reply->held);
    assert_int_equal(reply->reason, REASON_HELD_BY_OTHER);
    assert_string_equal(reply->holder, "one");
    assert_true(reply->holder_nonce_known);
    assert_memory_equal(reply->holder_nonce, taken.nonce, NONCE_BYTES);
    assert_true(reply->token == token);
    assert_true(reply->longest_ttl_ns >= BENCH_TTL_NS);
    assert_true(reply->expires_in_ns <= BENCH_TTL_NS);
    assert_int_equal(contract_subject.expires, reply->expires_in_ns >= 0);
}

/* The time of the grant, the same for its holder and for others, whatever is written later. */
static void all_are_told_since_when_it_is_held(void **state) {
    struct bench *bench = *state;
    int64_t before_ms = clock_now().real_ns / NS_PER_MS;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    int64_t after_ms = clock_now().real_ns / NS_PER_MS;
    int64_t since_ms = bench->clients[0].events[0].reply.held_since_ms;
    if (!contract_subject.tells_since) {
        assert_true(since_ms == 0);
    } else {
        assert_true(since_ms >= before_ms && since_ms <= after_ms);
    }

    struct store_request look = request_new(bench, 0);
    struct store_request raise = request_again(&taken);
    raise.raise_token = true;
    for (int i = 0; i < 2; i++) {
        bench_run(bench, 2 * NS_PER_MS, NULL);
        assert_true(
            client_expect(&bench->clients[1], STORE_ACQUIRED, &look, OUTCOME_NO)->held_since_ms ==
            since_ms);
        client_expect(&bench->clients[0], STORE_RENEWED, &raise, OUTCOME_YES);
        struct store_request retry = request_again(&taken);
        assert_true(
            client_expect(&bench->clients[0], STORE_ACQUIRED, &retry, OUTCOME_YES)->held_since_ms ==
            since_ms);
    }
}

static void holder_renews(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);

    for (int i = 0; i < 3; i++) {
        struct store_request request = request_again(&taken);
        const struct store_reply *reply =
            client_expect(&bench->clients[0], STORE_RENEWED, &request, OUTCOME_YES);
        assert_true(reply->token == token);
    }
}

static void another_cannot_renew(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    struct store_request foreign = request_new(bench, 0);
    struct store_request nobodys = request_new(bench, 1);

    client_expect(&bench->clients[1], STORE_RENEWED, &foreign, OUTCOME_NO);
    client_expect(&bench->clients[0], STORE_RENEWED, &foreign, OUTCOME_NO);
    struct store_request again = request_again(&taken);
    client_expect(&bench->clients[0], STORE_RENEWED, &again, OUTCOME_YES);

    /* Nor does a renewal take what is free. */
    client_expect(&bench->clients[0], STORE_RENEWED, &nobodys, OUTCOME_NO);
    client_take(&bench->clients[1], 1, NULL);
}

static void release_is_compared(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    struct store_request foreign = request_new(bench, 0);
    foreign.clean = true;

    client_expect(&bench->clients[1], STORE_RELEASED, &foreign, OUTCOME_NO);
    client_expect(&bench->clients[0], STORE_RELEASED, &foreign, OUTCOME_NO);
    struct store_request again = request_again(&taken);
    client_expect(&bench->clients[0], STORE_RENEWED, &again, OUTCOME_YES);
}

static void release_frees(void **state) {
    struct bench *bench = *state;

    for (int clean = 0; clean <= 1; clean++) {
        struct store_request taken = client_take(&bench->clients[0], 0, NULL);
        client_give(&bench->clients[0], &taken, clean != 0);
        struct store_request next = client_take(&bench->clients[1], 0, NULL);
        struct store_request again = request_again(&taken);
        client_expect(&bench->clients[0], STORE_RENEWED, &again, OUTCOME_NO);
        client_give(&bench->clients[1], &next, clean != 0);
    }
}

static void ended_nonce_releases_nothing(void **state) {
    struct bench *bench = *state;
    struct store_request ended = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &ended, false);
    struct store_request again = request_again(&ended);
    again.clean = true;

    client_expect(&bench->clients[0], STORE_RELEASED, &again, OUTCOME_NO);
    struct store_request taken = client_take(&bench->clients[1], 0, NULL);
    client_expect(&bench->clients[0], STORE_RELEASED, &again, OUTCOME_NO);
    struct store_request renewal = request_again(&taken);
    client_expect(&bench->clients[1], STORE_RENEWED, &renewal, OUTCOME_YES);
}

static void retry_gets_the_same_grant(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);

    for (int i = 0; i < 2; i++) {
        struct store_request again = request_again(&taken);
        const struct store_reply *reply =
            client_expect(&bench->clients[0], STORE_ACQUIRED, &again, OUTCOME_YES);
        assert_true(reply->token == token);
    }
    client_give(&bench->clients[0], &taken, false); /* one release is enough */
    client_take(&bench->clients[1], 0, NULL);
}

static void looking_does_not_take(void **state) {
    struct bench *bench = *state;
    struct store_request look = request_new(bench, 0);
    look.take = false;

    const struct store_reply *reply =
        client_expect(&bench->clients[0], STORE_ACQUIRED, &look, OUTCOME_NO);
    assert_false(reply->held);
    assert_string_equal(reply->holder, "");

    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[1], 0, &token);
    reply = client_expect(&bench->clients[0], STORE_ACQUIRED, &look, OUTCOME_NO);
    assert_true(reply->held);
    assert_string_equal(reply->holder, "two");
    assert_true(reply->token == token);

    client_give(&bench->clients[1], &taken, true);
    reply = client_expect(&bench->clients[0], STORE_ACQUIRED, &look, OUTCOME_NO);
    assert_false(reply->held);
    assert_true(reply->token == token);
}

static void elections_are_independent(void **state) {
    struct bench *bench = *state;
    struct store_request first = client_take(&bench->clients[0], 0, NULL);
    struct store_request second = client_take(&bench->clients[1], 1, NULL);
    struct store_request foreign = request_again(&first);

    foreign.election = 1; /* the right nonce in the wrong election */
    client_expect(&bench->clients[0], STORE_RELEASED, &foreign, OUTCOME_NO);
    client_give(&bench->clients[0], &first, true);
    struct store_request renewal = request_again(&second);
    client_expect(&bench->clients[1], STORE_RENEWED, &renewal, OUTCOME_YES);
}

static void other_namespace(struct store_setup *setup) {
    setup->namespace_ = "elsewhere";
}

static void namespaces_are_independent(void **state) {
    struct bench *bench = *state;
    struct client *other = client_open(bench, 2, other_namespace);
    client_take(&bench->clients[0], 0, NULL);
    struct store_request taken = client_take(other, 0, NULL);
    client_give(other, &taken, true);
}

static void free_again_when_its_holder_closes(void **state) {
    struct bench *bench = *state;
    client_take(&bench->clients[0], 0, NULL);
    client_close(&bench->clients[0]);

    struct store_request request = request_new(bench, 0);
    enum outcome expected = contract_subject.frees_on_close ? OUTCOME_YES : OUTCOME_NO;
    const struct store_reply *reply =
        client_expect(&bench->clients[1], STORE_ACQUIRED, &request, expected);
    assert_int_not_equal(reply->prior, PRIOR_CLEAN);
}

static void short_ttl(struct store_setup *setup) {
    setup->ttl_ns = 300 * NS_PER_MS;
    setup->margin_ns = 60 * NS_PER_MS;
}

static void free_again_when_it_expires(void **state) {
    struct bench *bench = *state;
    if (!contract_subject.expires) {
        return;
    }
    struct client *holder = client_open(bench, 2, short_ttl);
    struct store_request taken = client_take(holder, 0, NULL);
    int64_t confirmed_ns = holder->events[0].reply.sent.boot_ns;
    const struct store_event *event = NULL;
    do {
        struct store_request request = request_new(bench, 0);
        event = client_do(&bench->clients[1], STORE_ACQUIRED, &request);
        assert_int_not_equal(event->reply.outcome, OUTCOME_UNSURE);
        assert_true(event->reply.sent.boot_ns - confirmed_ns < 5 * NS_PER_S);
    } while (event->reply.outcome == OUTCOME_NO);
    assert_int_not_equal(event->reply.prior, PRIOR_CLEAN);
    struct store_request renewal = request_again(&taken);
    client_expect(holder, STORE_RENEWED, &renewal, OUTCOME_NO);
}

int contract_locking(void) {
    const struct CMUnitTest tests[] = {
        BENCH_TEST(free_lock_is_given),
        BENCH_TEST(second_store_is_shown_the_holder),
        BENCH_TEST(all_are_told_since_when_it_is_held),
        BENCH_TEST(holder_renews),
        BENCH_TEST(another_cannot_renew),
        BENCH_TEST(release_is_compared),
        BENCH_TEST(release_frees),
        BENCH_TEST(ended_nonce_releases_nothing),
        BENCH_TEST(retry_gets_the_same_grant),
        BENCH_TEST(looking_does_not_take),
        BENCH_TEST(elections_are_independent),
        BENCH_TEST(namespaces_are_independent),
        BENCH_TEST(free_again_when_its_holder_closes),
        BENCH_TEST(free_again_when_it_expires),
    };
    return cmocka_run_group_tests_name("locking", tests, NULL, NULL);
}
