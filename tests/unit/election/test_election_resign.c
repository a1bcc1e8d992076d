#include "driver.h"

#include <string.h>

/* Giving leadership away while the process stays. */

static void resign(struct driver *driver) {
    driver_event(driver, EVENT_RESIGN);
}

static void readers_hear_of_it_before_the_lock_is_released(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_ask(&driver);
    resign(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_reason(&driver, REASON_RESIGNED);
    assert_true(driver.last.changed);
    assert_int_equal(driver.op, OP_NONE);
    assert_false(driver_ask(&driver).leader);
    assert_string_equal(driver.election.view.holder, "");
}

/* Nothing was handed out: the same step publishes `resigning` and asks for the release. */
static void without_handouts_it_releases_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    resign(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_true(driver.last.changed);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    assert_int_equal(driver.asked.token, 5000);
    assert_true(driver.asked.clean);
}

static void waits_for_what_was_handed_out(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_pass(&driver, 500 * MS);
    driver_ask(&driver);
    int64_t until_ns = driver.now.boot_ns + 2 * S;
    resign(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_true(driver.asked.clean);
}

/* Nobody else can lead while a validity runs. */
static void renewals_go_on_until_then(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_pass(&driver, 100 * MS);
    driver_ask(&driver);
    resign(&driver);
    int renewals = 0;
    while (driver.op != OP_RELEASE) {
        driver_sleep_to_op(&driver);
        if (driver.op == OP_RENEW) {
            renewals++;
            driver_yes(&driver);
            assert_state(&driver, STATE_RESIGNING);
            assert_reason(&driver, REASON_RESIGNED);
        }
    }
    assert_int_equal(renewals, 2);
    assert_int_equal(driver.now.boot_ns, driver.handouts.until_ns);
}

/* With `--drain none` too: the application still runs. */
static void renewals_go_on_with_drain_none(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.valid_for_ns = 7 * S;
    driver.config.drain_none = true;
    driver_lead(&driver);
    driver_pass(&driver, 100 * MS);
    driver_ask(&driver);
    resign(&driver);
    for (int i = 0; i < 2; i++) {
        driver_sleep_to_op(&driver);
        assert_int_equal(driver.op, OP_RENEW);
        driver_yes(&driver);
    }
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
}

static void an_unanswered_renewal_does_not_change_the_reason(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    resign(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    driver_unsure(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_reason(&driver, REASON_RESIGNED);
}

static void the_renewal_under_way_is_awaited(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    resign(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_int_equal(driver.op, OP_RENEW);
    driver_yes(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_true(driver.asked.clean);
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    resign(&driver);
    driver_held(&driver); /* nothing left to release */
    assert_int_equal(driver.last.resigned, true);
}

static void is_complete_once_the_lock_is_given_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    resign(&driver);
    assert_false(driver.last.resigned);
    driver_yes(&driver);
    assert_true(driver.last.resigned);
    assert_false(driver.last.finished);
    assert_state(&driver, STATE_FOLLOWER);
    assert_reason(&driver, REASON_RESIGNED);
    driver_tick(&driver);
    assert_false(driver.last.resigned); /* said once */
}

static void an_unsure_release_is_tried_again(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    resign(&driver);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(driver.op, OP_RELEASE);
        assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
        assert_true(driver.asked.clean);
        driver_unsure(&driver);
        assert_false(driver.last.resigned);
        assert_int_equal(driver.op, OP_NONE);
        driver_sleep_to_op(&driver);
    }
    driver_yes(&driver);
    assert_true(driver.last.resigned);
}

/* The store stays silent: the key has run out by then, at the latest. */
static void is_complete_when_the_lease_has_run_out(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    int64_t expiry_ns = driver.sent.boot_ns + 10 * S;
    resign(&driver);
    while (!driver.last.resigned) {
        assert_int_equal(driver.op, OP_RELEASE);
        driver_unsure(&driver);
        if (!driver.last.resigned) {
            driver_sleep_to_op(&driver);
        }
    }
    assert_in_range(driver.now.boot_ns, expiry_ns, expiry_ns + 1 * S);
    assert_state(&driver, STATE_UNKNOWN); /* no word for a ttl: nobody knows who leads now */
}

static void stands_back_for_the_wait_and_only_looks(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    resign(&driver);
    driver_yes(&driver);
    int64_t until_ns = driver.now.boot_ns + 10 * S;
    int64_t wake_ns = driver.last.wake_ns;
    driver_wake(&driver, true); /* its own release: no reason to hurry */
    assert_int_equal(driver.last.wake_ns, wake_ns);
    int looks = 0;
    for (driver_sleep_to_op(&driver); !driver.asked.take; driver_sleep_to_op(&driver)) {
        assert_int_equal(driver.op, OP_ACQUIRE);
        assert_true(driver.now.boot_ns < until_ns);
        looks++;
        driver_pass(&driver, 1 * MS);
        driver_answer(&driver, reply_no(&driver)); /* free */
        assert_state(&driver, STATE_FOLLOWER);
        assert_string_equal(driver.election.view.holder, "");
    }
    assert_in_range(looks, 3, 6);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_memory_not_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_state(&driver, STATE_LEADER);
}

static void who_stands_back_sees_the_successor(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    resign(&driver);
    driver_yes(&driver);
    driver_sleep_to_op(&driver);
    driver_held(&driver);
    assert_reason(&driver, REASON_HELD_BY_OTHER);
    assert_string_equal(driver.election.view.holder, "pod-b");
}

static void a_longer_wait_stands_back_longer(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.wait_floor_ns = 40 * S;
    driver_lead(&driver);
    resign(&driver);
    driver_yes(&driver);
    assert_int_equal(driver.election.stand_back_until_ns, driver.now.boot_ns + 40 * S);
}

static void a_follower_has_nothing_to_give_and_stands_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    resign(&driver);
    assert_true(driver.last.resigned);
    assert_state(&driver, STATE_FOLLOWER);
    driver_sleep_to_op(&driver);
    assert_false(driver.asked.take);
}

/* It was perhaps granted. */
static void an_unanswered_acquire_is_given_back_without_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct election_actions first = driver.asked;
    for (int i = 0; i < 4; i++) {
        driver_unsure(&driver);
        driver_sleep_to_op(&driver);
    }
    driver_unsure(&driver);
    resign(&driver);
    assert_false(driver.last.resigned);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(driver.op, OP_RELEASE);
        assert_memory_equal(driver.asked.nonce, first.nonce, NONCE_BYTES);
        assert_false(driver.asked.clean);
        assert_false(driver.last.resigned);
        driver_unsure(&driver);
        if (driver.op == OP_NONE && !driver.last.resigned) {
            driver_sleep_to_op(&driver);
        }
    }
    assert_true(driver.last.resigned);
}

static void resign_during(struct driver *driver) {
    driver_config(driver);
    driver_start(driver);
    resign(driver);
    assert_false(driver->last.resigned);
    assert_int_equal(driver->op, OP_ACQUIRE);
    driver_pass(driver, 1 * MS);
}

static void an_acquire_under_way_is_awaited(void **state) {
    (void)state;
    struct driver driver;
    resign_during(&driver);
    driver_answer(&driver, reply_held(&driver, "pod-b"));
    assert_true(driver.last.resigned);
    resign_during(&driver);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
    driver_yes(&driver);
    assert_true(driver.last.resigned);
    resign_during(&driver);
    driver_answer(&driver, reply_unsure(&driver));
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void a_pending_grant_is_given_back_without_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    resign(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void a_no_while_resigning_completes_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    resign(&driver);
    driver_sleep_to_op(&driver);
    driver_held(&driver);
    assert_true(driver.last.resigned);
    assert_state(&driver, STATE_FOLLOWER);
}

/* Validities outlast the drain: no more renewals; the release comes when they have run out. */
static void after_the_drain_time_it_renews_no_more(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 1 * S;
    driver.config.valid_for_ns = 7 * S;
    driver_lead(&driver);
    driver_ask(&driver);
    resign(&driver);
    driver_sleep_until(&driver, driver.now.boot_ns + 5 * S);
    driver_tick(&driver); /* a renewal would have been due */
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, driver.handouts.until_ns);
    assert_true(driver.asked.clean);
}

/* `--drain none` speaks of the process's end. The application that resigns still runs. */
static void drain_none_does_not_hurry_a_resignation(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_none = true;
    driver_lead(&driver);
    driver_ask(&driver);
    resign(&driver);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, driver.handouts.until_ns);
    assert_true(driver.asked.clean);
}

static void a_doubted_lease_can_be_resigned(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver.now.real_ns += 20 * S;
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    resign(&driver);
    assert_state(&driver, STATE_RESIGNING);
    driver_yes(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_hear_of_it_before_the_lock_is_released),
        cmocka_unit_test(without_handouts_it_releases_at_once),
        cmocka_unit_test(waits_for_what_was_handed_out),
        cmocka_unit_test(renewals_go_on_until_then),
        cmocka_unit_test(renewals_go_on_with_drain_none),
        cmocka_unit_test(an_unanswered_renewal_does_not_change_the_reason),
        cmocka_unit_test(the_renewal_under_way_is_awaited),
        cmocka_unit_test(is_complete_once_the_lock_is_given_back),
        cmocka_unit_test(an_unsure_release_is_tried_again),
        cmocka_unit_test(is_complete_when_the_lease_has_run_out),
        cmocka_unit_test(stands_back_for_the_wait_and_only_looks),
        cmocka_unit_test(who_stands_back_sees_the_successor),
        cmocka_unit_test(a_longer_wait_stands_back_longer),
        cmocka_unit_test(a_follower_has_nothing_to_give_and_stands_back),
        cmocka_unit_test(an_unanswered_acquire_is_given_back_without_mark),
        cmocka_unit_test(an_acquire_under_way_is_awaited),
        cmocka_unit_test(a_pending_grant_is_given_back_without_mark),
        cmocka_unit_test(a_no_while_resigning_completes_it),
        cmocka_unit_test(after_the_drain_time_it_renews_no_more),
        cmocka_unit_test(drain_none_does_not_hurry_a_resignation),
        cmocka_unit_test(a_doubted_lease_can_be_resigned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
