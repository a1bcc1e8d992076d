/* What a grant is told about the lease before it: the clean mark and its limits. */
#include "bench.h"

static const struct store_reply *take_reply(struct client *client) {
    client_take(client, 0, NULL);
    return &client->events[0].reply;
}

static void clean_release_is_told(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, true);

    const struct store_reply *reply = take_reply(&bench->clients[1]);
    assert_int_equal(reply->prior, PRIOR_CLEAN);
    assert_int_equal(reply->doubt, DOUBT_NONE);
}

static void release_without_mark_proves_nothing(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, false);

    const struct store_reply *reply = take_reply(&bench->clients[1]);
    assert_int_not_equal(reply->prior, PRIOR_CLEAN);
}

static void mark_is_good_once(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, true);
    taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, false);

    const struct store_reply *reply = take_reply(&bench->clients[1]);
    assert_int_not_equal(reply->prior, PRIOR_CLEAN);
}

static void refused_release_leaves_no_mark(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    struct store_request foreign = request_new(bench, 0);
    foreign.clean = true;
    client_expect(&bench->clients[1], STORE_RELEASED, &foreign, OUTCOME_NO);
    client_give(&bench->clients[0], &taken, false);

    const struct store_reply *reply = take_reply(&bench->clients[1]);
    assert_int_not_equal(reply->prior, PRIOR_CLEAN);
}

static void mark_is_only_for_the_grants_own_record(void **state) {
    struct bench *bench = *state;
    for (int i = 0; i < 2; i++) {
        struct store_request taken = client_take(&bench->clients[0], 0, NULL);
        taken.token = i == 0 ? taken.token - 1 : 0;
        client_give(&bench->clients[0], &taken, true); /* given back, but not marked */

        taken = client_take(&bench->clients[1], 0, NULL);
        assert_int_not_equal(bench->clients[1].events[0].reply.prior, PRIOR_CLEAN);
        client_give(&bench->clients[1], &taken, false);
    }
}

static void retry_is_told_the_same(void **state) {
    struct bench *bench = *state;
    struct store_request taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, true);
    taken = client_take(&bench->clients[1], 0, NULL);
    assert_int_equal(bench->clients[1].events[0].reply.prior, PRIOR_CLEAN);

    struct store_request again = request_again(&taken);
    const struct store_reply *reply =
        client_expect(&bench->clients[1], STORE_ACQUIRED, &again, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_CLEAN);

    /* The same after an end without the mark: the retry's own record must not count as one. */
    client_give(&bench->clients[1], &taken, false);
    taken = client_take(&bench->clients[0], 0, NULL);
    assert_int_not_equal(bench->clients[0].events[0].reply.prior, PRIOR_CLEAN);
    again = request_again(&taken);
    reply = client_expect(&bench->clients[0], STORE_ACQUIRED, &again, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_NONE);
}

static void record_behind_what_was_seen_proves_nothing(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);
    client_give(&bench->clients[0], &taken, true);

    struct store_request request = request_new(bench, 0);
    request.seen_token = token + 1000;
    const struct store_reply *reply =
        client_expect(&bench->clients[1], STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_NONE);
    assert_int_equal(reply->doubt, DOUBT_TOKEN_BEHIND);
}

static void seen_up_to_the_record_is_enough(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);
    client_give(&bench->clients[0], &taken, true);

    struct store_request request = request_new(bench, 0);
    request.seen_token = token;
    const struct store_reply *reply =
        client_expect(&bench->clients[1], STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_CLEAN);
}

static void record_outlives_the_connection(void **state) {
    struct bench *bench = *state;
    uint64_t token = 0;
    struct store_request taken = client_take(&bench->clients[0], 0, &token);
    client_give(&bench->clients[0], &taken, true);
    client_close(&bench->clients[0]);
    client_close(&bench->clients[1]);

    struct client *next = client_open(bench, 2, NULL);
    const struct store_reply *reply = take_reply(next);
    assert_int_equal(reply->prior, PRIOR_CLEAN);
    assert_true(reply->token > token);
}

static void long_ttl(struct store_setup *setup) {
    setup->ttl_ns = 60 * NS_PER_S;
    setup->margin_ns = 12 * NS_PER_S;
}

static void longest_ttl_is_kept_until_a_clean_end(void **state) {
    struct bench *bench = *state;
    struct client *slow = client_open(bench, 2, long_ttl);
    struct store_request taken = client_take(slow, 0, NULL);
    client_give(slow, &taken, false);

    taken = client_take(&bench->clients[0], 0, NULL);
    assert_true(bench->clients[0].events[0].reply.longest_ttl_ns >= 60 * NS_PER_S);
    client_give(&bench->clients[0], &taken, false);
    taken = client_take(&bench->clients[1], 0, NULL);
    assert_true(bench->clients[1].events[0].reply.longest_ttl_ns >= 60 * NS_PER_S);
    client_give(&bench->clients[1], &taken, true);
    taken = client_take(&bench->clients[0], 0, NULL);
    client_give(&bench->clients[0], &taken, true);

    const struct store_reply *reply = take_reply(&bench->clients[1]);
    assert_true(reply->longest_ttl_ns == BENCH_TTL_NS);
}

int contract_priors(void) {
    const struct CMUnitTest tests[] = {
        BENCH_TEST(clean_release_is_told),
        BENCH_TEST(release_without_mark_proves_nothing),
        BENCH_TEST(mark_is_good_once),
        BENCH_TEST(refused_release_leaves_no_mark),
        BENCH_TEST(mark_is_only_for_the_grants_own_record),
        BENCH_TEST(retry_is_told_the_same),
        BENCH_TEST(record_behind_what_was_seen_proves_nothing),
        BENCH_TEST(seen_up_to_the_record_is_enough),
        BENCH_TEST(record_outlives_the_connection),
        BENCH_TEST(longest_ttl_is_kept_until_a_clean_end),
    };
    return cmocka_run_group_tests_name("priors", tests, NULL, NULL);
}
