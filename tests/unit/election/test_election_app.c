#include "driver.h"

#include <string.h>

/* Leadership that ends with the application's own life. */

static void app(struct driver *driver, enum app_event event) {
    driver_app(driver, event, 0);
}

static void lead_attached(struct driver *driver) {
    driver_lead(driver);
    app(driver, APP_ATTACHED);
    assert_state(driver, STATE_LEADER);
}

/* The application asks: what it is told is in a ledger of its own. */
static void ask(struct driver *driver) {
    struct handouts ledger = driver->handouts;
    ledger.until_ns = ledger.app_until_ns;
    assert_true(view_answer(&driver->election.view, driver->now, &ledger).leader);
    driver->handouts.app_until_ns = ledger.until_ns;
}

static void start(struct driver *driver) {
    driver_config(driver);
    lead_attached(driver);
    ask(driver);
    driver_pass(driver, 1 * MS);
}

static void its_end_gives_the_lock_back_at_once(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    app(&driver, APP_GONE);
    assert_state(&driver, STATE_RESIGNING);
    assert_reason(&driver, REASON_APP_GONE);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_true(driver.asked.clean);
    assert_true(driver.last.app_stopped);
    assert_false(driver.last.revoke);
    driver_yes(&driver);
    driver_sleep_to_op(&driver);
    assert_false(driver.asked.take);
}

/* Others that were answered are no part of it. */
static void its_end_says_nothing_of_other_readers(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    driver_ask(&driver);
    app(&driver, APP_GONE);
    assert_state(&driver, STATE_RESIGNING);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, driver.handouts.until_ns);
}

static void a_missed_beat_waits_for_its_validity(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    int64_t until_ns = driver.handouts.app_until_ns;
    app(&driver, APP_HUNG);
    assert_reason(&driver, REASON_APP_HUNG);
    assert_int_equal(driver.op, OP_NONE);
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_by_ns, until_ns);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_true(driver.asked.clean);
}

/* Heard of again, it may not know what it was told meanwhile: it is not waited for any longer. */
static void a_beat_after_a_missed_one_makes_nobody_wait(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    int64_t until_ns = driver.handouts.app_until_ns;
    app(&driver, APP_HUNG);
    app(&driver, APP_BEATS);
    assert_int_equal(driver.op, OP_NONE);
    assert_false(driver.last.revoke);
    driver_event(&driver, EVENT_DRAIN); /* nor does that give it more time */
    assert_int_equal(driver.election.app_until_ns, until_ns);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
}

static void done_after_a_missed_beat_ends_the_wait(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    app(&driver, APP_HUNG);
    app(&driver, APP_BEATS);
    driver_app(&driver, APP_DONE, driver.election.app_token);
    assert_int_equal(driver.op, OP_RELEASE);
}

static void a_missed_beat_does_not_wait_in_efficiency(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.efficiency = true;
    lead_attached(&driver);
    ask(&driver);
    uint64_t token = driver.election.view.token;
    app(&driver, APP_HUNG);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean); /* it may still work */
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_token, token);
}

static void a_cut_connection_is_no_stop(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    uint64_t token = driver.election.view.token;
    int64_t until_ns = driver.handouts.app_until_ns;
    app(&driver, APP_CUT);
    assert_reason(&driver, REASON_APP_GONE);
    assert_int_equal(driver.op, OP_NONE);
    app(&driver, APP_ATTACHED); /* another one: it cannot speak for the first */
    assert_false(driver.last.revoke);
    driver_app(&driver, APP_DONE, token);
    app(&driver, APP_GONE);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
}

static void a_resignation_waits_for_done(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    uint64_t token = driver.election.view.token;
    int64_t deadline_ns = driver.election.view.lease.boot_deadline_ns;
    driver_event(&driver, EVENT_RESIGN);
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_token, token);
    assert_int_equal(driver.last.revoke_by_ns, deadline_ns); /* nearer than the drain's end */
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    driver_yes(&driver);
    assert_false(driver.last.revoke); /* it does not grow */
    driver_app(&driver, APP_DONE, token - 1);
    assert_int_equal(driver.op, OP_NONE);
    driver_app(&driver, APP_DONE, token);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_true(driver.asked.clean);
}

static void the_shorter_drain_is_what_it_is_told(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 3 * S;
    lead_attached(&driver);
    driver_event(&driver, EVENT_DRAIN);
    assert_int_equal(driver.last.revoke_by_ns, driver.now.boot_ns + 3 * S);
}

static void never_done_is_never_released(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    driver_event(&driver, EVENT_DRAIN);
    while (!driver.last.finished) {
        if (driver.op != OP_NONE) {
            assert_int_equal(driver.op, OP_RENEW);
            driver_yes(&driver);
        }
        driver_pass(&driver, driver.last.wake_ns - driver.now.boot_ns);
        driver_tick(&driver);
    }
    assert_true(driver.last.left_to_lapse);
}

/* The process stays: no renewal after the drain, and the lock is left to go by itself. */
static void never_done_in_a_resignation_lapses(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_ns = 1 * S;
    lead_attached(&driver);
    int64_t expiry_ns = driver.sent.boot_ns + 10 * S;
    driver_event(&driver, EVENT_RESIGN);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, expiry_ns);
    assert_false(driver.asked.clean);
}

static void told_again_when_the_time_shrinks(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    driver_event(&driver, EVENT_RESIGN);
    driver_pass(&driver, 1 * S);
    driver.now.real_ns += 20 * S; /* the wall clock says that the lease has run out */
    driver_tick(&driver);
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_by_ns, driver.now.boot_ns);
    driver_tick(&driver);
    assert_false(driver.last.revoke);
}

static void a_loss_leaves_it_what_it_was_promised(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    int64_t until_ns = driver.handouts.app_until_ns;
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_by_ns, until_ns);
    driver_pass(&driver, 1 * MS);
    driver_tick(&driver);
    assert_false(driver.last.revoke); /* told once */
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_false(driver.asked.take); /* it still works under the last grant */
    driver_answer(&driver, reply_no(&driver));
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_true(driver.asked.take);
}

/* BOOTTIME stood with the VM: by the wall clock nothing is left of what it was promised. */
static void a_loss_after_a_vm_pause_leaves_nothing(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    driver.now.real_ns += 20 * S;
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    assert_true(driver.last.revoke);
    assert_int_equal(driver.last.revoke_by_ns, driver.now.boot_ns);
}

static void after_a_loss_done_lets_it_try_at_once(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    uint64_t token = driver.election.view.token;
    int64_t until_ns = driver.handouts.app_until_ns;
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    driver_app(&driver, APP_DONE, token);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.take);
    assert_true(driver.now.boot_ns < until_ns);
}

static void stands_only_while_one_is_attached(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.require_app = true;
    driver_start(&driver);
    assert_false(driver.asked.take);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_no(&driver));
    driver_pass(&driver, 1 * MS);
    app(&driver, APP_ATTACHED);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.take);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    app(&driver, APP_GONE);
    driver_yes(&driver);           /* the release */
    for (int i = 0; i < 20; i++) { /* long after it has stood back */
        driver_sleep_to_op(&driver);
        assert_false(driver.asked.take);
        driver_pass(&driver, 1 * MS);
        driver_answer(&driver, reply_no(&driver));
    }
    app(&driver, APP_ATTACHED);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.take);
}

static void attaching_ends_standing_back(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_event(&driver, EVENT_RESIGN);
    driver_yes(&driver);
    int64_t until_ns = driver.now.boot_ns + 10 * S;
    app(&driver, APP_ATTACHED);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.take);
    assert_true(driver.now.boot_ns < until_ns);
}

static void a_failed_check_resigns_and_a_good_one_stands_again(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.app_check = true;
    driver_start(&driver);
    assert_false(driver.asked.take); /* it has not answered yet */
    driver_answer(&driver, reply_no(&driver));
    driver_pass(&driver, 1 * MS);
    app(&driver, APP_HEALTHY);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_state(&driver, STATE_LEADER);
    app(&driver, APP_UNHEALTHY);
    assert_reason(&driver, REASON_APP_UNHEALTHY);
    assert_int_equal(driver.op, OP_RELEASE);
    driver_yes(&driver);
    int64_t until_ns = driver.now.boot_ns + 10 * S;
    app(&driver, APP_HEALTHY);
    while (driver_sleep_to_op(&driver), !driver.asked.take) {
        driver_answer(&driver, reply_no(&driver));
    }
    assert_int_equal(driver.now.boot_ns, until_ns);
}

static void it_gives_leadership_away_itself(void **state) {
    (void)state;
    struct driver driver;
    start(&driver);
    app(&driver, APP_RESIGNS);
    assert_reason(&driver, REASON_RESIGNED);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_true(driver.asked.clean);
    assert_false(driver.last.revoke);
}

static void with_drain_none_nobody_waits_for_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.drain_none = true;
    lead_attached(&driver);
    ask(&driver);
    driver_event(&driver, EVENT_DRAIN);
    assert_int_equal(driver.op, OP_RELEASE);
}

static void hung_it_stands_again_once_it_beats(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    app(&driver, APP_ATTACHED);
    app(&driver, APP_HUNG);
    driver_sleep_until(&driver, driver.now.boot_ns); /* nothing yet */
    for (int i = 0; i < 8; i++) {
        driver_sleep_to_op(&driver);
        assert_false(driver.asked.take);
        driver_held(&driver);
    }
    app(&driver, APP_BEATS);
    driver_sleep_to_op(&driver);
    assert_true(driver.asked.take);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_end_gives_the_lock_back_at_once),
        cmocka_unit_test(its_end_says_nothing_of_other_readers),
        cmocka_unit_test(a_missed_beat_waits_for_its_validity),
        cmocka_unit_test(a_beat_after_a_missed_one_makes_nobody_wait),
        cmocka_unit_test(done_after_a_missed_beat_ends_the_wait),
        cmocka_unit_test(a_missed_beat_does_not_wait_in_efficiency),
        cmocka_unit_test(a_cut_connection_is_no_stop),
        cmocka_unit_test(a_resignation_waits_for_done),
        cmocka_unit_test(the_shorter_drain_is_what_it_is_told),
        cmocka_unit_test(never_done_is_never_released),
        cmocka_unit_test(never_done_in_a_resignation_lapses),
        cmocka_unit_test(told_again_when_the_time_shrinks),
        cmocka_unit_test(a_loss_leaves_it_what_it_was_promised),
        cmocka_unit_test(a_loss_after_a_vm_pause_leaves_nothing),
        cmocka_unit_test(after_a_loss_done_lets_it_try_at_once),
        cmocka_unit_test(stands_only_while_one_is_attached),
        cmocka_unit_test(attaching_ends_standing_back),
        cmocka_unit_test(a_failed_check_resigns_and_a_good_one_stands_again),
        cmocka_unit_test(it_gives_leadership_away_itself),
        cmocka_unit_test(with_drain_none_nobody_waits_for_it),
        cmocka_unit_test(hung_it_stands_again_once_it_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
