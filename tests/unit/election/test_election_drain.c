#include "driver.h"

#include <string.h>

/* The end of the process. */

static void drain(struct driver *driver) {
    driver_event(driver, EVENT_DRAIN);
}

static void a_leader_releases_with_the_mark_and_finishes(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_ask(&driver);
    int64_t until_ns = driver.handouts.until_ns;
    drain(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_reason(&driver, REASON_DRAINING);
    assert_true(driver.last.changed);
    assert_false(driver_ask(&driver).leader);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_true(driver.asked.clean);
    assert_false(driver.last.finished);
    driver_yes(&driver);
    assert_true(driver.last.finished);
    assert_false(driver.last.left_to_lapse);
    assert_false(driver_ask(&driver).leader);
}

/* Renews until the drain is over, and is left with a validity that still runs. */
static void leaves_the_lease_to_lapse_when_the_drain_is_over(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 5 * S;
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    drain(&driver);
    int64_t over_ns = driver.now.boot_ns + 5 * S;
    int renewals = 0;
    while (!driver.last.finished) {
        if (driver.op != OP_NONE) {
            assert_int_equal(driver.op, OP_RENEW);
            renewals++;
            driver_yes(&driver);
        }
        driver_pass(&driver, driver.last.wake_ns - driver.now.boot_ns);
        driver_tick(&driver);
    }
    assert_int_equal(renewals, 1);
    assert_int_equal(driver.now.boot_ns, over_ns);
    assert_true(driver.last.left_to_lapse);
    assert_state(&driver, STATE_RESIGNING);
}

static void nothing_more_is_asked_for_after_the_end(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 1 * S;
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    drain(&driver);
    driver_sleep_until(&driver, driver.now.boot_ns + 1 * S);
    assert_true(driver.last.finished);
    driver_pass(&driver, 30 * S);
    driver_tick(&driver);
    assert_int_equal(driver.op, OP_NONE);
    driver_wake(&driver, true);
    assert_int_equal(driver.op, OP_NONE);
}

/* A release that nobody answers does not keep the process. */
static void an_unanswered_release_ends_with_the_drain(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 3 * S;
    driver_lead(&driver);
    drain(&driver);
    int64_t over_ns = driver.now.boot_ns + 3 * S;
    int releases = 0;
    while (!driver.last.finished) {
        assert_int_equal(driver.op, OP_RELEASE);
        assert_true(driver.asked.clean);
        releases++;
        driver_unsure(&driver);
        while (driver.op == OP_NONE && !driver.last.finished) {
            driver_pass(&driver, driver.last.wake_ns - driver.now.boot_ns);
            driver_tick(&driver);
        }
    }
    assert_true(releases > 3);
    assert_int_equal(driver.now.boot_ns, over_ns);
    assert_true(driver.last.left_to_lapse);
}

static void a_drain_that_ends_during_a_release_does_not_wait_for_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 1 * S;
    driver_lead(&driver);
    drain(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    driver_sleep_until(&driver, driver.now.boot_ns + 1 * S);
    assert_true(driver.last.finished);
    assert_true(driver.last.left_to_lapse);
}

/* The application has ended before: what it was told does not matter any more. */
static void drain_none_releases_at_once_with_the_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_none = true;
    driver_lead(&driver);
    driver_ask(&driver);
    drain(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_true(driver.asked.clean);
    driver_yes(&driver);
    assert_true(driver.last.finished);
    assert_false(driver.last.left_to_lapse);
}

/* The release of a late copy was waiting for a validity of an earlier grant. */
static void drain_none_ends_the_wait_of_a_release(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_none = true;
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    driver_sleep_to_op(&driver);
    driver_ask(&driver);
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, grant.nonce, NONCE_BYTES);
    driver_answer(&driver, reply);
    assert_int_equal(driver.op, OP_NONE);
    drain(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void drain_none_gives_the_release_two_attempts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_none = true;
    driver_lead(&driver);
    drain(&driver);
    int64_t start_ns = driver.now.boot_ns;
    driver_pass(&driver, 10 * S / 6);
    driver_answer(&driver, reply_unsure(&driver));
    assert_false(driver.last.finished);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    driver_sleep_until(&driver, start_ns + 2 * (10 * S / 6));
    assert_true(driver.last.finished);
    assert_true(driver.last.left_to_lapse);
}

static void a_pending_grant_gets_no_mark_before_its_wait_is_over(void **state) {
    (void)state;
    for (int none = 0; none <= 1; none++) {
        struct driver driver;
        driver_config(&driver);
        driver.config.drain_none = none;
        driver_pend(&driver);
        drain(&driver);
        assert_state(&driver, STATE_RESIGNING);
        assert_int_equal(driver.op, OP_RELEASE);
        assert_int_equal(driver.asked.token, 5000);
        assert_false(driver.asked.clean);
        driver_yes(&driver);
        assert_true(driver.last.finished);
    }
}

static void a_pending_grant_gets_the_mark_after_its_wait(void **state) {
    (void)state;
    for (int64_t early_ns = 0; early_ns <= 1; early_ns++) {
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
        driver_pass(&driver, until_ns - early_ns - driver.now.boot_ns);
        drain(&driver);
        assert_int_equal(driver.op, OP_RENEW);
        driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
        assert_int_equal(driver.op, OP_RELEASE);
        assert_int_equal(driver.asked.clean, early_ns == 0);
    }
}

static void an_unsure_acquire_is_released_without_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    driver_unsure(&driver);
    drain(&driver);
    assert_false(driver.last.finished);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
    assert_false(driver.asked.clean);
    driver_yes(&driver);
    assert_true(driver.last.finished);
}

static void an_acquire_under_way_is_awaited_and_given_back(void **state) {
    (void)state;
    for (int sure = 0; sure <= 1; sure++) {
        struct driver driver;
        driver_config(&driver);
        driver_start(&driver);
        drain(&driver);
        assert_false(driver.last.finished);
        driver_pass(&driver, 1 * MS);
        driver_answer(&driver, sure ? reply_yes(&driver, PRIOR_CLEAN) : reply_unsure(&driver));
        assert_false(driver_ask(&driver).leader);
        assert_int_equal(driver.op, OP_RELEASE);
        assert_false(driver.asked.clean);
        driver_yes(&driver);
        assert_true(driver.last.finished);
    }
}

static void a_refused_acquire_finishes(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    drain(&driver);
    driver_held(&driver);
    assert_true(driver.last.finished);
    assert_int_equal(driver.op, OP_NONE);
}

static void a_follower_finishes_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    drain(&driver);
    assert_true(driver.last.finished);
    assert_false(driver.last.left_to_lapse);
    assert_int_equal(driver.op, OP_NONE);
    assert_reason(&driver, REASON_DRAINING);
}

static void a_lease_that_runs_out_in_the_drain_is_given_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.valid_for_ns = 8 * S;
    driver.config.drain_ns = 20 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    drain(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    driver_sleep_until(&driver, driver.election.view.lease.boot_deadline_ns);
    assert_state(&driver, STATE_RESIGNING);
    driver_unsure(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
    driver_held(&driver); /* another has it by now */
    assert_true(driver.last.finished);
}

static void a_lost_lock_finishes_the_drain(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_ask(&driver);
    drain(&driver);
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    assert_true(driver.last.finished);
    assert_false(driver.last.left_to_lapse);
}

static void a_drain_overtakes_a_resignation(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_ask(&driver);
    driver_event(&driver, EVENT_RESIGN);
    driver_pass(&driver, 100 * MS);
    drain(&driver);
    assert_reason(&driver, REASON_DRAINING);
    driver_event(&driver, EVENT_RESIGN); /* too late to stay */
    assert_reason(&driver, REASON_DRAINING);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    driver_yes(&driver);
    assert_true(driver.last.finished);
    assert_true(driver.last.resigned); /* whoever asked for it has it */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_releases_with_the_mark_and_finishes),
        cmocka_unit_test(leaves_the_lease_to_lapse_when_the_drain_is_over),
        cmocka_unit_test(nothing_more_is_asked_for_after_the_end),
        cmocka_unit_test(an_unanswered_release_ends_with_the_drain),
        cmocka_unit_test(a_drain_that_ends_during_a_release_does_not_wait_for_it),
        cmocka_unit_test(drain_none_releases_at_once_with_the_mark),
        cmocka_unit_test(drain_none_ends_the_wait_of_a_release),
        cmocka_unit_test(drain_none_gives_the_release_two_attempts),
        cmocka_unit_test(a_pending_grant_gets_no_mark_before_its_wait_is_over),
        cmocka_unit_test(a_pending_grant_gets_the_mark_after_its_wait),
        cmocka_unit_test(an_unsure_acquire_is_released_without_mark),
        cmocka_unit_test(an_acquire_under_way_is_awaited_and_given_back),
        cmocka_unit_test(a_refused_acquire_finishes),
        cmocka_unit_test(a_follower_finishes_at_once),
        cmocka_unit_test(a_lease_that_runs_out_in_the_drain_is_given_back),
        cmocka_unit_test(a_lost_lock_finishes_the_drain),
        cmocka_unit_test(a_drain_overtakes_a_resignation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
