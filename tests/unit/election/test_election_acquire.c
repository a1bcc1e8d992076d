#include "driver.h"

#include <string.h>

/* Asking for the lock, and what each answer to that means. */

static void starts_unknown_and_asks_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_STARTING);
    assert_int_equal(driver.election.view.index, 640);
    assert_true(driver.asked.take);
    assert_int_equal(driver.asked.seen_token, 0);
    assert_int_equal(driver.asked.wait_ns, 10 * S);
    assert_false(driver_ask(&driver).leader);
}

static void an_attempt_is_a_sixth_of_the_ttl_and_two_seconds_at_most(void **state) {
    (void)state;
    struct election_config config = {.ttl_ns = 3 * S};
    assert_int_equal(election_attempt_ns(&config), S / 2);
    config.ttl_ns = 60 * S;
    assert_int_equal(election_attempt_ns(&config), 2 * S);
}

static void a_yes_after_a_clean_end_leads_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    assert_reason(&driver, REASON_ACQUIRED);
    assert_true(driver.last.changed);
    struct answer answer = driver_ask(&driver);
    assert_true(answer.leader);
    assert_int_equal(answer.token, 5000);
}

static void the_lease_counts_from_the_send(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_pass(&driver, 1500 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_state(&driver, STATE_LEADER);
    assert_int_equal(driver.election.view.lease.boot_deadline_ns, driver.sent.boot_ns + 8 * S);
    assert_int_equal(driver.election.view.lease.real_deadline_ns, driver.sent.real_ns + 8 * S);
}

static void a_no_makes_a_follower_and_shows_the_holder(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    assert_reason(&driver, REASON_HELD_BY_OTHER);
    assert_string_equal(driver.election.view.holder, "pod-b");
    assert_true(driver.last.changed);
    assert_int_equal(driver.election.view.index, 641);
}

static void an_unsure_answer_is_neither(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_unsure(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_STORE_UNREACHABLE);
    assert_int_equal(driver.election.grant, GRANT_ASKED);
    assert_false(driver.last.changed);
}

static void a_retry_keeps_the_nonce(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    for (int i = 0; i < 5; i++) {
        driver_unsure(&driver);
        driver_sleep_to_op(&driver);
        assert_int_equal(driver.op, OP_ACQUIRE);
        assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
        assert_true(driver.asked.take);
    }
    driver_yes(&driver);
    assert_state(&driver, STATE_PENDING);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
}

/* Doubles from 20 to 500 ms; the random half keeps replicas apart. */
static void retries_back_off_with_jitter(void **state) {
    (void)state;
    int64_t delay_ns = 20 * MS;
    int64_t least_ns = NEVER_NS;
    int64_t most_ns = 0;
    for (int failures = 1; failures <= 8; failures++) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct driver driver;
            driver_config(&driver);
            driver.seed = seed;
            driver_start(&driver);
            for (int i = 1; i < failures; i++) {
                driver_unsure(&driver);
                driver_sleep_to_op(&driver);
            }
            int64_t slept_ns = driver_unsure(&driver).wake_ns - driver.now.boot_ns;
            assert_in_range(slept_ns, delay_ns / 2, delay_ns - 1);
            if (failures == 8) {
                least_ns = slept_ns < least_ns ? slept_ns : least_ns;
                most_ns = slept_ns > most_ns ? slept_ns : most_ns;
            }
        }
        delay_ns = delay_ns * 2 < 500 * MS ? delay_ns * 2 : 500 * MS;
    }
    assert_true(most_ns - least_ns > 150 * MS);
}

static void a_word_of_the_store_ends_the_back_off(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    for (int i = 0; i < 6; i++) {
        driver_unsure(&driver);
        driver_sleep_to_op(&driver);
    }
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    driver_unsure(&driver);
    assert_true(driver.last.wake_ns - driver.now.boot_ns < 20 * MS);
}

static void the_back_off_of_a_short_ttl_is_a_tenth_of_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.ttl_ns = 300 * MS;
    driver.config.margin_ns = 60 * MS;
    driver_start(&driver);
    for (int i = 0; i < 6; i++) {
        driver_unsure(&driver);
        assert_in_range(driver.last.wake_ns - driver.now.boot_ns, 10 * MS, 30 * MS);
        driver_sleep_to_op(&driver);
    }
}

static void a_no_takes_a_new_nonce(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_memory_not_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
}

/* A copy of the request was still under way when the store said no. */
static void an_ended_nonce_that_is_found_is_released_without_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    driver_unsure(&driver);
    driver_sleep_to_op(&driver);
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, first.nonce, NONCE_BYTES);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_FOLLOWER);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
    assert_false(driver.asked.clean);
    driver_yes(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_memory_not_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
}

static void the_nonce_of_a_lost_grant_is_known_too(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    struct election_actions renewal = driver.asked;
    driver_held(&driver);
    assert_state(&driver, STATE_FOLLOWER);
    driver_sleep_to_op(&driver);
    assert_memory_not_equal(driver.asked.nonce, renewal.nonce, NONCE_BYTES);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, renewal.nonce, NONCE_BYTES);
    driver_answer(&driver, reply);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void a_found_nonce_of_another_is_left_alone(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
}

/* However long it takes: the grant never led. */
static void the_release_of_a_found_nonce_never_gets_the_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    driver_unsure(&driver);
    driver_sleep_to_op(&driver);
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, first.nonce, NONCE_BYTES);
    driver_answer(&driver, reply);
    assert_int_equal(driver.op, OP_RELEASE);
    driver_pass(&driver, 25 * S); /* the process was stopped */
    driver_answer(&driver, reply_unsure(&driver));
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
    assert_false(driver.asked.clean);
}

static void a_late_yes_is_given_back_without_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    driver_pass(&driver, 8 * S);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_state(&driver, STATE_UNKNOWN);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
    assert_false(driver.asked.clean);
}

static void a_yes_that_realtime_has_overtaken_is_given_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_pass(&driver, 1 * MS);
    driver.now.real_ns += 60 * S;
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void refuses_token(uint64_t token) {
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 1 * S);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_yes(&driver, PRIOR_CLEAN);
    reply.token = token;
    driver_answer(&driver, reply);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
    assert_reason(&driver, REASON_STORE_REFUSED);
}

static void a_token_above_the_limit_is_refused(void **state) {
    (void)state;
    refuses_token(TOKEN_MAX + 1);
    refuses_token(UINT64_MAX);
    struct driver driver;
    driver_config(&driver);
    driver.next_token = TOKEN_MAX;
    driver_lead(&driver);
    assert_int_equal(driver_ask(&driver).token, TOKEN_MAX);
}

static void a_grant_without_a_token_is_refused(void **state) {
    (void)state;
    refuses_token(0);
}

/* The store said 4999 when another held the lock: that token has been published. */
static void a_token_that_is_not_above_all_seen_is_refused(void **state) {
    (void)state;
    refuses_token(4999);
}

/* It was only looked at: no grant was asked for. */
static void a_yes_to_a_look_is_given_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    driver_event(&driver, EVENT_RESIGN);
    driver_sleep_to_op(&driver);
    assert_false(driver.asked.take);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

/* Nothing gets better by asking again at once. */
static void refused_tokens_back_off(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    int64_t start_ns = driver.now.boot_ns;
    int grants = 0;
    while (driver.now.boot_ns - start_ns < 30 * S) {
        grants += driver.op == OP_ACQUIRE;
        driver.next_token = TOKEN_MAX + 1;
        driver_yes(&driver);
        if (driver.op == OP_NONE) {
            driver_sleep_to_op(&driver);
        }
    }
    assert_in_range(grants, 3, 200);
}

static void tokens_seen_are_told_to_the_store(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 1 * S);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.asked.seen_token, 4999);
    driver.next_token = 100; /* the store has lost its record */
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.asked.seen_token, 4999);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.token = TOKEN_MAX + 1; /* nonsense is not learned */
    driver_answer(&driver, reply);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.asked.seen_token, 4999);
}

static void efficiency_leads_at_once_whatever_came_before(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.efficiency = true;
    driver_start(&driver);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
    assert_true(driver_ask(&driver).leader);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    assert_false(driver.asked.raise_token);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_unknown_and_asks_at_once),
        cmocka_unit_test(an_attempt_is_a_sixth_of_the_ttl_and_two_seconds_at_most),
        cmocka_unit_test(a_yes_after_a_clean_end_leads_at_once),
        cmocka_unit_test(the_lease_counts_from_the_send),
        cmocka_unit_test(a_no_makes_a_follower_and_shows_the_holder),
        cmocka_unit_test(an_unsure_answer_is_neither),
        cmocka_unit_test(a_retry_keeps_the_nonce),
        cmocka_unit_test(retries_back_off_with_jitter),
        cmocka_unit_test(a_word_of_the_store_ends_the_back_off),
        cmocka_unit_test(the_back_off_of_a_short_ttl_is_a_tenth_of_it),
        cmocka_unit_test(a_no_takes_a_new_nonce),
        cmocka_unit_test(an_ended_nonce_that_is_found_is_released_without_mark),
        cmocka_unit_test(the_nonce_of_a_lost_grant_is_known_too),
        cmocka_unit_test(a_found_nonce_of_another_is_left_alone),
        cmocka_unit_test(the_release_of_a_found_nonce_never_gets_the_mark),
        cmocka_unit_test(a_late_yes_is_given_back_without_mark),
        cmocka_unit_test(a_yes_that_realtime_has_overtaken_is_given_back),
        cmocka_unit_test(a_token_above_the_limit_is_refused),
        cmocka_unit_test(a_grant_without_a_token_is_refused),
        cmocka_unit_test(a_token_that_is_not_above_all_seen_is_refused),
        cmocka_unit_test(a_yes_to_a_look_is_given_back),
        cmocka_unit_test(refused_tokens_back_off),
        cmocka_unit_test(tokens_seen_are_told_to_the_store),
        cmocka_unit_test(efficiency_leads_at_once_whatever_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
