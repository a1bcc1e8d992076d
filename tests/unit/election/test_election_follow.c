#include "driver.h"

/* How long a follower sleeps, and what wakes it. */

static int64_t slept_ns(const struct driver *driver) {
    return driver->last.wake_ns - driver->now.boot_ns;
}

static void sleeps_to_the_expiry_when_it_may_vouch(void **state) {
    (void)state;
    int64_t most_ns = 0;
    int64_t least_ns = NEVER_NS;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct driver driver;
        driver_config(&driver);
        driver.seed = seed;
        driver_watch(&driver, 12 * S);
        driver_sleep_to_op(&driver);
        driver_pass(&driver, 1 * MS);
        struct store_reply reply = reply_held(&driver, "pod-b");
        reply.expires_in_ns = 1200 * MS;
        driver_answer(&driver, reply);
        assert_in_range(slept_ns(&driver), 1201 * MS, 1205 * MS);
        least_ns = slept_ns(&driver) < least_ns ? slept_ns(&driver) : least_ns;
        most_ns = slept_ns(&driver) > most_ns ? slept_ns(&driver) : most_ns;
    }
    assert_true(most_ns - least_ns > 1 * MS); /* replicas do not all come at once */
}

static void comes_half_a_margin_later_when_it_may_not_vouch(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 1200 * MS);
    assert_in_range(slept_ns(&driver), 2201 * MS, 2205 * MS);
    driver_config(&driver);
    driver.config.efficiency = true; /* leads at once in any case */
    driver_follow(&driver, 1200 * MS);
    assert_in_range(slept_ns(&driver), 1201 * MS, 1205 * MS);
}

static void sleeps_a_third_of_the_ttl_at_most(void **state) {
    (void)state;
    int64_t least_ns = NEVER_NS;
    int64_t most_ns = 0;
    for (uint64_t i = 0; i < 50; i++) {
        struct driver driver;
        driver_config(&driver);
        driver.first_index = i;
        driver_follow(&driver, 9 * S);
        assert_in_range(slept_ns(&driver), 1, 10 * S / 3);
        least_ns = slept_ns(&driver) < least_ns ? slept_ns(&driver) : least_ns;
        most_ns = slept_ns(&driver) > most_ns ? slept_ns(&driver) : most_ns;
    }
    assert_true(most_ns - least_ns > 10 * S / 3 / 2); /* replicas do not all come at once */
}

static void sleeps_as_long_when_the_expiry_is_unknown(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, -1);
    assert_in_range(slept_ns(&driver), 10 * S / 3 - 2 * MS, 10 * S / 3);
}

static void a_store_that_is_polled_is_polled(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.poll_ns = 250 * MS;
    driver_follow(&driver, -1);
    assert_in_range(slept_ns(&driver), 218 * MS, 250 * MS);
}

static void a_foreign_value_is_reported_and_looked_at_each_second(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_held(&driver, "?");
    reply.reason = REASON_FOREIGN_VALUE;
    reply.holder_nonce_known = false;
    reply.expires_in_ns = -1;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_FOLLOWER);
    assert_reason(&driver, REASON_FOREIGN_VALUE);
    assert_string_equal(driver.election.view.holder, "?");
    assert_in_range(slept_ns(&driver), 800 * MS, 1000 * MS);
    assert_int_equal(driver_sleep_to_op(&driver).op, OP_ACQUIRE); /* it is never released */
}

static void a_clean_release_wakes_everybody_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 9 * S);
    driver_pass(&driver, 1 * S);
    driver_wake(&driver, true);
    assert_int_equal(driver.op, OP_ACQUIRE); /* in the same step, without a timer */
}

static void after_another_release_those_who_can_vouch_go_first(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 9 * S);
    driver_wake(&driver, false);
    assert_in_range(slept_ns(&driver), 1 * S, 1 * S + 1 * MS);
    driver_config(&driver);
    driver_watch(&driver, 12 * S);
    driver_wake(&driver, false);
    assert_true(slept_ns(&driver) <= 1 * MS);
    driver_config(&driver);
    driver.config.efficiency = true;
    driver_follow(&driver, 9 * S);
    driver_wake(&driver, false);
    assert_true(slept_ns(&driver) <= 1 * MS);
}

/* The cap of the sleep must not wake it between the expiry and its own turn. */
static void the_cap_does_not_let_it_come_before_its_turn(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver); /* ttl 10 s, margin 2 s: a cap of 3.3 s, a turn 1 s after the expiry */
    driver_follow(&driver, 2800 * MS);
    assert_true(slept_ns(&driver) >= 3800 * MS);
    driver_config(&driver);
    driver_follow(&driver, 9 * S);
    assert_true(slept_ns(&driver) <= 10 * S / 3);
}

/* A lock file tells no time: nobody can vouch, so nobody has to be let through first. */
static void without_a_clock_nobody_goes_first(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.server_now_us = 0;
    reply.server[0] = '\0';
    reply.expires_in_ns = -1;
    driver_answer(&driver, reply);
    driver_wake(&driver, false);
    assert_true(slept_ns(&driver) <= 1 * MS);
}

static void a_hint_never_lengthens_the_sleep(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, -1);
    int64_t wake_ns = driver.last.wake_ns;
    driver_pass(&driver, wake_ns - 100 * MS - driver.now.boot_ns);
    driver_wake(&driver, false);
    assert_int_equal(driver.last.wake_ns, wake_ns);
}

/* The release may have come after the store had answered. */
static void a_hint_during_an_acquire_is_kept(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_wake(&driver, true);
    assert_int_equal(driver.op, OP_ACQUIRE);
    driver_held(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    driver_held(&driver); /* and used once */
    assert_true(slept_ns(&driver) > 1 * S);
}

static void a_kept_hint_lets_those_who_can_vouch_go_first_too(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    driver_wake(&driver, false);
    driver_held(&driver);
    assert_in_range(slept_ns(&driver), 1 * S, 1 * S + 1 * MS);
}

/* What is wrong is not put right by a release; two such candidates would wake each other. */
static void a_hint_says_nothing_to_who_is_refused_for_its_settings(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.reason = REASON_STORE_REFUSED;
    reply.expires_in_ns = -1;
    driver_wake(&driver, true); /* while it asks */
    driver_answer(&driver, reply);
    assert_reason(&driver, REASON_STORE_REFUSED);
    assert_true(slept_ns(&driver) > 1 * S);
    int64_t wake_ns = driver.last.wake_ns;
    driver_wake(&driver, true);
    assert_int_equal(driver.op, OP_NONE);
    assert_int_equal(driver.last.wake_ns, wake_ns);

    /* Once it is put right they count again. */
    assert_int_equal(driver_sleep_to_op(&driver).op, OP_ACQUIRE);
    driver_held(&driver);
    driver_wake(&driver, true);
    assert_int_equal(driver.op, OP_ACQUIRE);
}

static void a_hint_says_nothing_to_a_leader(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    int64_t wake_ns = driver.last.wake_ns;
    driver_wake(&driver, true);
    assert_state(&driver, STATE_LEADER);
    assert_int_equal(driver.op, OP_NONE);
    assert_int_equal(driver.last.wake_ns, wake_ns);
}

static void a_ttl_of_silence_is_unknown(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, -1);
    int64_t word_ns = driver.now.boot_ns;
    driver_sleep_to_op(&driver);
    driver_sleep_until(&driver, word_ns + 10 * S - 1);
    assert_state(&driver, STATE_FOLLOWER);
    driver_sleep_until(&driver, word_ns + 10 * S);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_STORE_UNREACHABLE);
    assert_string_equal(driver.election.view.holder, "");
    driver_held(&driver);
    assert_state(&driver, STATE_FOLLOWER);
}

/* An error is not a word, however often it comes. */
static void errors_do_not_count_as_words(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, -1);
    int64_t word_ns = driver.now.boot_ns;
    driver_sleep_to_op(&driver);
    while (driver.election.view.state == STATE_FOLLOWER) {
        struct store_reply reply = reply_unsure(&driver);
        reply.reason = REASON_STORE_REFUSED;
        driver_pass(&driver, 1 * MS);
        driver_answer(&driver, reply);
        if (driver.op == OP_NONE) {
            driver_sleep_to_op(&driver);
        }
    }
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_STORE_REFUSED);
    assert_in_range(driver.now.boot_ns, word_ns + 10 * S, word_ns + 10 * S + 510 * MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_to_the_expiry_when_it_may_vouch),
        cmocka_unit_test(comes_half_a_margin_later_when_it_may_not_vouch),
        cmocka_unit_test(sleeps_a_third_of_the_ttl_at_most),
        cmocka_unit_test(sleeps_as_long_when_the_expiry_is_unknown),
        cmocka_unit_test(a_store_that_is_polled_is_polled),
        cmocka_unit_test(a_foreign_value_is_reported_and_looked_at_each_second),
        cmocka_unit_test(a_clean_release_wakes_everybody_at_once),
        cmocka_unit_test(after_another_release_those_who_can_vouch_go_first),
        cmocka_unit_test(the_cap_does_not_let_it_come_before_its_turn),
        cmocka_unit_test(without_a_clock_nobody_goes_first),
        cmocka_unit_test(a_hint_never_lengthens_the_sleep),
        cmocka_unit_test(a_hint_during_an_acquire_is_kept),
        cmocka_unit_test(a_kept_hint_lets_those_who_can_vouch_go_first_too),
        cmocka_unit_test(a_hint_says_nothing_to_who_is_refused_for_its_settings),
        cmocka_unit_test(a_hint_says_nothing_to_a_leader),
        cmocka_unit_test(a_ttl_of_silence_is_unknown),
        cmocka_unit_test(errors_do_not_count_as_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
