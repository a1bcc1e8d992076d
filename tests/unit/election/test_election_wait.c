#include "driver.h"

/* Waiting for an older lease, and the renewal on which a grant leads after that. */

/* Renews on until the grant leads; the moment at which the renewal that did it was sent. */
static int64_t wait_it_out(struct driver *driver) {
    while (driver->election.view.state == STATE_PENDING) {
        if (driver->op == OP_NONE) {
            driver_sleep_to_op(driver);
        }
        assert_int_equal(driver->op, OP_RENEW);
        assert_false(driver_ask(driver).leader);
        driver_yes(driver);
    }
    assert_state(driver, STATE_LEADER);
    assert_reason(driver, REASON_ACQUIRED);
    return driver->sent.boot_ns;
}

static void the_wait_counts_from_the_arrival(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_pass(&driver, 1500 * MS);
    int64_t arrival_ns = driver.now.boot_ns;
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_int_equal(driver.election.view.wait_until_ns, arrival_ns + 10 * S);
    assert_int_equal(wait_it_out(&driver), arrival_ns + 10 * S);
    assert_int_equal(driver.election.view.wait_until_ns, 0);
}

static void a_found_grant_waits_from_the_reply_that_confirmed_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_unsure(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 300 * MS);
    int64_t arrival_ns = driver.now.boot_ns;
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_int_equal(wait_it_out(&driver), arrival_ns + 10 * S);
}

static void the_wait_is_the_floor_when_that_is_longer(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.wait_floor_ns = 25 * S;
    driver_pend(&driver);
    assert_int_equal(driver.asked.wait_ns, 25 * S);
    int64_t arrival_ns = driver.now.boot_ns;
    assert_int_equal(wait_it_out(&driver), arrival_ns + 25 * S);
}

static void the_wait_is_a_recorded_ttl_when_that_is_longer(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.longest_ttl_ns = 40 * S;
    driver_answer(&driver, reply);
    int64_t arrival_ns = driver.now.boot_ns;
    assert_int_equal(wait_it_out(&driver), arrival_ns + 40 * S);
}

static void a_ttl_seen_as_follower_lengthens_the_wait(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.longest_ttl_ns = 40 * S;
    driver_answer(&driver, reply);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.asked.wait_ns, 40 * S);
    driver_yes(&driver);
    int64_t arrival_ns = driver.now.boot_ns;
    assert_int_equal(wait_it_out(&driver), arrival_ns + 40 * S);
}

/* Renewals of a pending grant teach a longer ttl, then a shorter one. */
static void the_wait_grows_and_never_shrinks(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    int64_t arrival_ns = driver.now.boot_ns;
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.longest_ttl_ns = 30 * S;
    driver_answer(&driver, reply);
    assert_int_equal(driver.election.view.wait_until_ns, arrival_ns + 30 * S);
    driver_sleep_to_op(&driver);
    reply = reply_yes(&driver, PRIOR_NONE);
    reply.longest_ttl_ns = 1 * S;
    driver_answer(&driver, reply);
    assert_int_equal(wait_it_out(&driver), arrival_ns + 30 * S);
}

static void a_longer_ttl_in_the_last_answer_still_counts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    int64_t arrival_ns = driver.now.boot_ns;
    while (!driver.last.raise_token) {
        driver_sleep_to_op(&driver);
        if (!driver.last.raise_token) {
            driver_yes(&driver);
        }
    }
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.longest_ttl_ns = 15 * S;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_PENDING);
    assert_int_equal(wait_it_out(&driver), arrival_ns + 15 * S);
}

static void an_absurd_ttl_is_not_learned(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.longest_ttl_ns = 3600 * S + 1;
    driver_answer(&driver, reply);
    assert_int_equal(election_wait_ns(&driver.election), 10 * S);
}

/* It was sent before the wait was over, and says nothing of the time after. */
static void a_renewal_sent_before_the_end_of_the_wait_does_not_lead(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    int64_t until_ns = driver.election.view.wait_until_ns;
    do {
        driver_sleep_to_op(&driver);
        if (until_ns - driver.now.boot_ns > 3 * S) {
            driver_yes(&driver);
        }
    } while (driver.op == OP_NONE);
    assert_false(driver.asked.raise_token);
    assert_true(driver.sent.boot_ns < until_ns);
    driver_pass(&driver, until_ns + 100 * MS - driver.now.boot_ns);
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_state(&driver, STATE_PENDING);
    assert_int_equal(driver.op, OP_RENEW); /* the one that it leads on, at once */
    assert_true(driver.asked.raise_token);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
}

static void leads_with_a_raised_token(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    struct election_actions grant = driver.asked;
    driver.next_token = 5007;
    wait_it_out(&driver);
    assert_true(driver.asked.raise_token);
    assert_int_equal(driver.asked.seen_token, 5000);
    assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    assert_int_equal(driver_ask(&driver).token, 5007);
    driver_sleep_to_op(&driver);
    assert_false(driver.asked.raise_token);
}

static void an_unsure_raise_is_tried_again(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    do {
        driver_sleep_to_op(&driver);
        if (!driver.last.raise_token) {
            driver_yes(&driver);
        }
    } while (driver.op == OP_NONE);
    driver_unsure(&driver);
    assert_state(&driver, STATE_PENDING);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.raise_token);
    driver.next_token = 5100;
    driver_yes(&driver);
    assert_int_equal(driver_ask(&driver).token, 5100);
}

/* Without a token above all others it must not lead. */
static void a_raise_without_a_usable_token_does_not_lead(void **state) {
    (void)state;
    static const uint64_t tokens[] = {0, 5000, TOKEN_MAX + 1};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        struct driver driver;
        driver_config(&driver);
        driver_pend(&driver);
        do {
            driver_sleep_to_op(&driver);
            if (!driver.last.raise_token) {
                driver_yes(&driver);
            }
        } while (driver.op == OP_NONE);
        driver.next_token = tokens[i];
        driver_yes(&driver);
        assert_false(driver_ask(&driver).leader);
        assert_reason(&driver, REASON_STORE_REFUSED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_counts_from_the_arrival),
        cmocka_unit_test(a_found_grant_waits_from_the_reply_that_confirmed_it),
        cmocka_unit_test(the_wait_is_the_floor_when_that_is_longer),
        cmocka_unit_test(the_wait_is_a_recorded_ttl_when_that_is_longer),
        cmocka_unit_test(a_ttl_seen_as_follower_lengthens_the_wait),
        cmocka_unit_test(the_wait_grows_and_never_shrinks),
        cmocka_unit_test(a_longer_ttl_in_the_last_answer_still_counts),
        cmocka_unit_test(an_absurd_ttl_is_not_learned),
        cmocka_unit_test(a_renewal_sent_before_the_end_of_the_wait_does_not_lead),
        cmocka_unit_test(leads_with_a_raised_token),
        cmocka_unit_test(an_unsure_raise_is_tried_again),
        cmocka_unit_test(a_raise_without_a_usable_token_does_not_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
