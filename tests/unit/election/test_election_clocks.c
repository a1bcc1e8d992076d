#include "driver.h"

/* Clocks that step, hosts that sleep, loops that stall. */

static void step_real(struct driver *driver, int64_t ns) {
    driver->now.real_ns += ns;
}

/* A leader whose REALTIME has run out, while BOOTTIME has not; the core knows. */
static void doubted(struct driver *driver) {
    driver_config(driver);
    driver_lead(driver);
    driver_pass(driver, 1 * S);
    step_real(driver, 20 * S);
    driver_tick(driver);
    assert_state(driver, STATE_UNKNOWN);
    assert_reason(driver, REASON_CLOCK_STEP);
}

static void realtime_run_out_asks_the_store_at_once(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    assert_true(driver.last.changed);
}

static void a_renewal_sent_after_the_doubt_clears_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    doubted(&driver);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
    assert_reason(&driver, REASON_RENEWED);
    assert_int_equal(driver_ask(&driver).token, 5000); /* the same grant goes on */
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
}

static void a_doubt_outlives_the_step_back(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    step_real(&driver, -20 * S);
    driver_tick(&driver);
    assert_false(driver_ask(&driver).leader);
    driver_unsure(&driver);
    driver_tick(&driver);
    assert_false(driver_ask(&driver).leader);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RENEW);
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
}

static void a_renewal_sent_before_the_doubt_does_not_clear_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 10 * MS);
    step_real(&driver, 20 * S);
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    step_real(&driver, -20 * S);
    driver_pass(&driver, 10 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_false(driver_ask(&driver).leader);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RENEW); /* another, at once */
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
}

/* Another one cannot know that the lock never changed hands. */
static void in_doubt_only_the_same_server_counts(void **state) {
    (void)state;
    static const char *const others[] = {SERVER_B, ""};
    for (int i = 0; i < 2; i++) {
        struct driver driver;
        doubted(&driver);
        driver.server = others[i];
        driver_yes(&driver);
        assert_state(&driver, STATE_UNKNOWN);
        assert_int_equal(driver.op, OP_RELEASE);
        assert_false(driver.asked.clean);
    }
}

static void in_doubt_a_server_has_to_name_itself(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.server_now_us = 0;
    reply.server[0] = '\0';
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RELEASE);
}

/* A late copy of our acquire has made the lock anew; who knows who had it before. */
static void in_doubt_another_token_does_not_count(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.token++;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

/* Without a doubt a yes of another server is a yes, and that one may vouch from then on. */
static void the_server_of_the_last_yes_counts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver.server = SERVER_B;
    driver_sleep_to_op(&driver);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
    step_real(&driver, 20 * S);
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    driver_yes(&driver);
    assert_state(&driver, STATE_LEADER);
}

static void a_store_without_names_counts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_yes(&driver, PRIOR_CLEAN);
    reply.server[0] = '\0';
    reply.server_now_us = 0;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_LEADER);
    step_real(&driver, 20 * S);
    driver_tick(&driver);
    reply = reply_yes(&driver, PRIOR_NONE);
    reply.server[0] = '\0';
    reply.server_now_us = 0;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_LEADER);
}

static void a_no_in_doubt_ends_the_grant(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    driver_held(&driver);
    assert_state(&driver, STATE_FOLLOWER);
}

static void a_doubt_does_not_outlive_boottime(void **state) {
    (void)state;
    struct driver driver;
    doubted(&driver);
    driver_sleep_until(&driver, driver.election.view.lease.boot_deadline_ns);
    assert_reason(&driver, REASON_DEADLINE);
    driver_yes(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RELEASE);
}

static void the_core_wakes_when_realtime_runs_out(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    step_real(&driver, 4 * S); /* less than what remains */
    driver_tick(&driver);
    assert_state(&driver, STATE_LEADER);
    int64_t remaining_ns = driver.election.view.lease.real_deadline_ns - driver.now.real_ns;
    assert_int_equal(driver.last.wake_ns, driver.now.boot_ns + remaining_ns);
}

static void a_pending_grant_in_doubt_does_not_lead(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    while (!driver.last.raise_token) {
        driver_sleep_to_op(&driver);
        if (!driver.last.raise_token) {
            driver_yes(&driver);
        }
    }
    driver_pass(&driver, 1 * MS);
    step_real(&driver, 20 * S);
    driver_tick(&driver);
    step_real(&driver, -20 * S);
    driver.next_token = 5001;
    driver_yes(&driver);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RENEW);
    driver.next_token = 5002;
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
}

/* A reader saw it, the core has not stepped, and by its next step the clock is back. */
static void a_doubt_that_only_a_reader_saw_is_latched(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_pass(&driver, 1 * S);
    step_real(&driver, 20 * S);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.handouts.doubted_ns, driver.now.boot_ns);
    step_real(&driver, -20 * S);
    driver_pass(&driver, 10 * MS);
    assert_false(driver_ask(&driver).leader);
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_CLOCK_STEP);
    assert_int_equal(driver.op, OP_RENEW);
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
    /* nobody has to reset what the reader noted */
    driver_sleep_to_op(&driver);
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
}

static void a_reader_doubt_of_an_older_grant_is_settled(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_pass(&driver, 1 * S);
    step_real(&driver, 20 * S);
    driver_ask(&driver);
    driver_tick(&driver);
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_yes(&driver, PRIOR_CLEAN));
    assert_true(driver_ask(&driver).leader);
}

static void a_backward_step_changes_nothing(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    uint64_t index = driver.election.view.index;
    int64_t deadline_ns = driver.election.view.lease.boot_deadline_ns;
    step_real(&driver, -3600 * S);
    driver_tick(&driver);
    assert_state(&driver, STATE_LEADER);
    assert_int_equal(driver.election.view.index, index);
    assert_true(driver_ask(&driver).leader);
    driver_sleep_to_op(&driver);
    driver_sleep_until(&driver, deadline_ns - 1 * MS);
    assert_true(driver_ask(&driver).leader);
    driver_sleep_until(&driver, deadline_ns); /* BOOTTIME still decides */
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_DEADLINE);
}

/* After the step back each yes brings a REALTIME deadline of the new time. */
static void realtime_shortens_again_after_a_backward_step(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    step_real(&driver, -3600 * S);
    driver_sleep_to_op(&driver);
    driver_yes(&driver);
    step_real(&driver, 60 * S);
    assert_false(driver_ask(&driver).leader);
}

/* Back, a renewal is sent, and forward again: by its own send time that yes is worth nothing. */
static void a_yes_that_brings_a_doubt_is_noticed_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    step_real(&driver, -100 * S);
    driver_sleep_to_op(&driver);
    step_real(&driver, 100 * S);
    driver_yes(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_CLOCK_STEP);
    assert_int_equal(driver.op, OP_RENEW);
}

static void boottime_run_out_is_over_for_good(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver.now.boot_ns += 60 * S; /* the host slept; REALTIME has not been set yet */
    assert_false(driver_ask(&driver).leader);
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RELEASE);
}

static void a_stall_is_the_reason_paused(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_pass(&driver, 20 * S); /* woken 16 s late */
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_PAUSED);
}

static void a_stall_within_the_margin_is_a_plain_deadline(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, driver.last.wake_ns + 2 * S - driver.now.boot_ns);
    driver_tick(&driver);
    assert_reason(&driver, REASON_DEADLINE);
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, driver.last.wake_ns + 2 * S + 1 - driver.now.boot_ns);
    driver_tick(&driver);
    assert_reason(&driver, REASON_PAUSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(realtime_run_out_asks_the_store_at_once),
        cmocka_unit_test(a_renewal_sent_after_the_doubt_clears_it),
        cmocka_unit_test(a_doubt_outlives_the_step_back),
        cmocka_unit_test(a_renewal_sent_before_the_doubt_does_not_clear_it),
        cmocka_unit_test(in_doubt_only_the_same_server_counts),
        cmocka_unit_test(in_doubt_a_server_has_to_name_itself),
        cmocka_unit_test(in_doubt_another_token_does_not_count),
        cmocka_unit_test(the_server_of_the_last_yes_counts),
        cmocka_unit_test(a_store_without_names_counts),
        cmocka_unit_test(a_no_in_doubt_ends_the_grant),
        cmocka_unit_test(a_doubt_does_not_outlive_boottime),
        cmocka_unit_test(the_core_wakes_when_realtime_runs_out),
        cmocka_unit_test(a_pending_grant_in_doubt_does_not_lead),
        cmocka_unit_test(a_doubt_that_only_a_reader_saw_is_latched),
        cmocka_unit_test(a_reader_doubt_of_an_older_grant_is_settled),
        cmocka_unit_test(a_backward_step_changes_nothing),
        cmocka_unit_test(realtime_shortens_again_after_a_backward_step),
        cmocka_unit_test(a_yes_that_brings_a_doubt_is_noticed_at_once),
        cmocka_unit_test(boottime_run_out_is_over_for_good),
        cmocka_unit_test(a_stall_is_the_reason_paused),
        cmocka_unit_test(a_stall_within_the_margin_is_a_plain_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
