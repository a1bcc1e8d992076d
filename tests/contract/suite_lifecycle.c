/* Closing at any moment, many elections at once, hints, and what a store tells about itself. */
#include "bench.h"

#include <string.h>

/* A slow disk needs its time for so many. */
#define MANY_TIMEOUT_NS (18 * NS_PER_S)

static const enum store_event_type operations[] = {STORE_ACQUIRED, STORE_RENEWED, STORE_RELEASED};
#define OPERATION_COUNT (sizeof operations / sizeof operations[0])

static void closed_right_after_open(void **state) {
    struct bench *bench = *state;
    client_close(client_open(bench, 2, NULL));
}

static void closed_when_idle(void **state) {
    struct bench *bench = *state;
    client_take(&bench->clients[0], 0, NULL);
    client_close(&bench->clients[0]);
    bench_check(bench);
}

/* One store is closed while `operation` is under way, after some turns of the loop. */
static void close_under_way(struct bench *bench, enum store_event_type operation, int turns) {
    struct client *client = client_open(bench, 2, NULL);
    struct store_request request = request_new(bench, 0);
    bool taken = false;

    if (operation != STORE_ACQUIRED) {
        taken = client_do(client, STORE_ACQUIRED, &request)->reply.outcome == OUTCOME_YES;
    }
    request.clean = taken;
    client_issue(client, operation, &request);
    for (int i = 0; i < turns && client->pending_count > 0; i++) {
        uv_run(&bench->loop, UV_RUN_NOWAIT);
    }
    client_close(client);
    bench_check(bench);
}

static void closed_while_an_operation_is_under_way(void **state) {
    struct bench *bench = *state;
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        for (int turns = 0; turns < 6; turns++) {
            close_under_way(bench, operations[i], turns);
        }
    }
}

static void closed_with_many_operations_under_way(void **state) {
    struct bench *bench = *state;
    struct client *client = client_open(bench, 2, NULL);
    for (size_t election = 0; election < 4; election++) {
        struct store_request request = request_new(bench, election);
        client_issue(client, STORE_ACQUIRED, &request);
    }
    client_close(client);
}

static void closed_from_inside_an_event(void **state) {
    struct bench *bench = *state;
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        struct client *client = client_open(bench, 2, NULL);
        struct store_request request = request_new(bench, i);
        if (operations[i] != STORE_ACQUIRED) {
            client_do(client, STORE_ACQUIRED, &request);
        }
        /* A second answer may be on its way at that moment. */
        struct store_request other = request_new(bench, 3);
        client_issue(client, STORE_ACQUIRED, &other);
        client_issue(client, operations[i], &request);
        client->close_on_event = true;
        bench_run(bench, 20 * NS_PER_S, &client->closed);
        bench_check(bench);
        assert_true(client->closed);
    }
}

static void many_setup(struct store_setup *setup) {
    setup->election_count = BENCH_ELECTIONS;
}

static void many_elections_at_once(void **state) {
    struct bench *bench = *state;
    static struct store_request requests[BENCH_ELECTIONS];
    client_close(&bench->clients[1]);
    struct client *holder = client_open(bench, 2, many_setup);
    struct client *other = client_open(bench, 1, many_setup);

    for (size_t i = 0; i < BENCH_ELECTIONS; i++) {
        requests[i] = request_new(bench, i);
        requests[i].timeout_ns = MANY_TIMEOUT_NS;
        client_issue(holder, STORE_ACQUIRED, &requests[i]);
    }
    client_wait(holder);
    for (size_t i = 0; i < BENCH_ELECTIONS; i++) {
        assert_int_equal(holder->events[i].reply.outcome, OUTCOME_YES);
        struct store_request request = request_new(bench, i);
        request.timeout_ns = MANY_TIMEOUT_NS;
        client_issue(other, STORE_ACQUIRED, &request);
        client_issue(holder, STORE_RENEWED, &requests[i]);
    }
    client_wait(other);
    client_wait(holder);
    for (size_t i = 0; i < BENCH_ELECTIONS; i++) {
        assert_int_equal(holder->events[i].reply.outcome, OUTCOME_YES);
        assert_int_equal(other->events[i].reply.outcome, OUTCOME_NO);
        assert_memory_equal(other->events[i].reply.holder_nonce, requests[i].nonce, NONCE_BYTES);
        requests[i].clean = true;
        client_issue(holder, STORE_RELEASED, &requests[i]);
    }
    client_wait(holder);
    for (size_t i = 0; i < BENCH_ELECTIONS; i++) {
        assert_int_equal(holder->events[i].reply.outcome, OUTCOME_YES);
    }
}

static void contenders_at_once_give_one_winner(void **state) {
    struct bench *bench = *state;
    client_open(bench, 2, NULL);
    for (int round = 0; round < 10; round++) {
        struct store_request requests[BENCH_CLIENTS];
        unsigned winners = 0;
        size_t winner = 0;
        for (size_t i = 0; i < BENCH_CLIENTS; i++) {
            requests[i] = request_new(bench, 0);
            client_issue(&bench->clients[i], STORE_ACQUIRED, &requests[i]);
        }
        for (size_t i = 0; i < BENCH_CLIENTS; i++) {
            client_wait(&bench->clients[i]);
            assert_int_not_equal(bench->clients[i].events[0].reply.outcome, OUTCOME_UNSURE);
            if (bench->clients[i].events[0].reply.outcome == OUTCOME_YES) {
                winners++;
                winner = i;
            }
        }
        assert_int_equal(winners, 1);
        client_give(&bench->clients[winner], &requests[winner], true);
    }
}

static void clean_release_wakes_the_others(void **state) {
    struct bench *bench = *state;
    struct client *follower = &bench->clients[1];
    if (!contract_subject.wakes) {
        return;
    }
    /* Listening may begin a little after the first answer, so the release is repeated. */
    for (int i = 0; i < 20 && follower->wakes == 0; i++) {
        struct store_request taken = client_take(&bench->clients[0], 1, NULL);
        struct store_request request = request_new(bench, 1);
        client_expect(follower, STORE_ACQUIRED, &request, OUTCOME_NO);
        client_give(&bench->clients[0], &taken, true);
        for (int turn = 0; turn < 10 && follower->wakes == 0; turn++) {
            bench_run(bench, 20 * NS_PER_MS, NULL);
        }
    }
    bench_check(bench);
    assert_true(follower->wakes > 0);
    assert_true(follower->wake_clean);
    client_take(follower, 1, NULL); /* it came after the lock was free */
}

static void closed_from_inside_a_wake(void **state) {
    struct bench *bench = *state;
    struct client *follower = &bench->clients[1];
    if (!contract_subject.wakes) {
        return;
    }
    struct store_request taken_once = client_take(follower, 0, NULL);
    client_give(follower, &taken_once, false);
    bench_run(bench, 50 * NS_PER_MS, NULL); /* it may hear of its own release */
    follower->close_on_event = true;
    for (int i = 0; i < 20 && !follower->closed; i++) {
        struct store_request taken = client_take(&bench->clients[0], 0, NULL);
        client_give(&bench->clients[0], &taken, true);
        bench_run(bench, 200 * NS_PER_MS, &follower->closed);
    }
    bench_check(bench);
    assert_true(follower->closed);
}

static void lock_space_tells_what_is_competed_for(void **state) {
    struct bench *bench = *state;
    char spaces[2][2][512] = {0};
    const struct store_ops *ops = contract_subject.ops;

    for (size_t election = 0; election < 2; election++) {
        client_take(&bench->clients[0], election, NULL);
        struct store_request request = request_new(bench, election);
        client_expect(&bench->clients[1], STORE_ACQUIRED, &request, OUTCOME_NO);
        for (size_t i = 0; i < 2; i++) {
            ops->lock_space(bench->clients[i].store, election, spaces[i][election],
                            sizeof spaces[i][election]);
        }
        assert_string_not_equal(spaces[0][election], "");
        assert_string_equal(spaces[0][election], spaces[1][election]);
    }
    assert_string_not_equal(spaces[0][0], spaces[0][1]);

    char tiny[4] = "xxx";
    ops->lock_space(bench->clients[0].store, 0, tiny, sizeof tiny);
    assert_true(strlen(tiny) < sizeof tiny);
}

static void store_names_itself(void **state) {
    (void)state;
    struct error error = {""};
    const struct store_ops *ops = contract_subject.ops;
    assert_non_null(ops->kind);
    assert_string_not_equal(ops->kind, "");
    assert_true(ops->poll_ns >= 0);
    assert_true(ops->claims(contract_space.url));
    assert_true(ops->check(contract_space.url, &error));
    assert_false(ops->claims(""));
    assert_false(ops->claims("unheard-of:place"));
}

int contract_lifecycle(void) {
    const struct CMUnitTest tests[] = {
        BENCH_TEST(closed_right_after_open),
        BENCH_TEST(closed_when_idle),
        BENCH_TEST(closed_while_an_operation_is_under_way),
        BENCH_TEST(closed_with_many_operations_under_way),
        BENCH_TEST(closed_from_inside_an_event),
        BENCH_TEST(many_elections_at_once),
        BENCH_TEST(contenders_at_once_give_one_winner),
        BENCH_TEST(clean_release_wakes_the_others),
        BENCH_TEST(closed_from_inside_a_wake),
        BENCH_TEST(lock_space_tells_what_is_competed_for),
        BENCH_TEST(store_names_itself),
    };
    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
