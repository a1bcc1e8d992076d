#include "driver.h"

/* Delayed leading: when an older lease may still be trusted. */

/* A follower that may vouch; the holder's key has run out, the next acquire is under way. */
static void watched(struct driver *driver) {
    driver_config(driver);
    driver_watch(driver, 12 * S);
    driver_sleep_to_op(driver);
}

/* YES after `round_trip_ns`: the last lease has run out `ended_us` before this. */
static void answer_end(struct driver *driver, int64_t round_trip_ns, int64_t ended_us) {
    driver_pass(driver, round_trip_ns);
    struct store_reply reply = reply_yes(driver, PRIOR_END);
    reply.server_now_us -= round_trip_ns / 2 / NS_PER_US;
    reply.prior_end_us = reply.server_now_us - ended_us;
    driver_answer(driver, reply);
}

static void assert_waits(struct driver *driver, enum prior_doubt doubt) {
    assert_state(driver, STATE_PENDING);
    assert_reason(driver, REASON_WAITING_FOR_OLD_LEASE);
    assert_int_equal(driver->election.view.doubt, doubt);
    assert_false(driver_ask(driver).leader);
}

static void end_in_the_past_leads_at_once_when_vouched_for(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    answer_end(&driver, 2 * MS, 100);
    assert_state(&driver, STATE_LEADER);
    assert_reason(&driver, REASON_ACQUIRED);
}

static void end_ahead_waits(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    answer_end(&driver, 2 * MS, 0); /* this very microsecond is not the past */
    assert_waits(&driver, DOUBT_END_AHEAD);
    watched(&driver);
    answer_end(&driver, 2 * MS, -3000000);
    assert_waits(&driver, DOUBT_END_AHEAD);
}

/* The record is older than a lease that was seen held. */
static void end_before_a_lease_seen_held_waits(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    int64_t ago_us = driver_server_now_us(&driver) - driver.election.proof.held_seen_us;
    answer_end(&driver, 2 * MS, ago_us + 1000);
    assert_state(&driver, STATE_LEADER); /* not before it: the very same moment */
    watched(&driver);
    answer_end(&driver, 2 * MS, ago_us + 1001);
    assert_state(&driver, STATE_PENDING);
    assert_false(driver_ask(&driver).leader);
}

static void a_lease_seen_by_a_refused_renewal_counts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    for (int i = 0; i < 5; i++) {
        driver_sleep_to_op(&driver);
        driver_yes(&driver);
    }
    driver_sleep_to_op(&driver);
    int64_t before_us = driver_server_now_us(&driver);
    driver_held(&driver); /* another has it */
    driver_sleep_to_op(&driver);
    answer_end(&driver, 2 * MS, driver_server_now_us(&driver) + 1000 - before_us);
    assert_state(&driver, STATE_PENDING);
}

/* Our own lease was held when it was renewed: a record that ends before that is an older one. */
static void a_lease_of_ones_own_counts(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    for (int i = 0; i < 5; i++) {
        driver_sleep_to_op(&driver);
        driver_yes(&driver);
    }
    int64_t renewed_us = driver_server_now_us(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 1 * MS);
    driver_answer(&driver, reply_no(&driver)); /* deleted */
    driver_sleep_to_op(&driver);
    answer_end(&driver, 2 * MS, driver_server_now_us(&driver) + 1000 - renewed_us + 1);
    assert_state(&driver, STATE_PENDING);
}

static void lose_it(struct driver *driver) {
    driver_step(driver, (struct election_event){
                            .type = EVENT_LOST,
                            .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    driver_sleep_to_op(driver);
    assert_int_equal(driver->op, OP_ACQUIRE);
}

static void a_lease_of_ones_own_counts_from_its_grant(void **state) {
    (void)state;
    for (int64_t early_us = 0; early_us <= 1; early_us++) {
        struct driver driver;
        watched(&driver);
        answer_end(&driver, 2 * MS, 100);
        assert_state(&driver, STATE_LEADER);
        int64_t granted_us = driver.election.proof.held_seen_us;
        assert_int_equal(granted_us, driver_server_now_us(&driver) - 1000);
        lose_it(&driver);
        answer_end(&driver, 2 * MS, driver_server_now_us(&driver) + 1000 - granted_us + early_us);
        assert_state(&driver, early_us ? STATE_PENDING : STATE_LEADER);
    }
}

/* The clock went back a little, not enough to spoil the series. */
static void the_latest_time_at_which_it_was_held_counts(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver_held(&driver);
    int64_t held_us = driver_server_now_us(&driver);
    driver.server_ahead_us -= 400000;
    driver_wake(&driver, true); /* which asks at once */
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    answer_end(&driver, 2 * MS, driver_server_now_us(&driver) + 1000 - held_us + 1);
    assert_state(&driver, STATE_PENDING);
}

static void times_of_another_server_do_not_count(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver.server = SERVER_B;
    driver.server_ahead_us -= 3600000000; /* an hour behind the first */
    for (int i = 0; i < 6; i++) {
        driver_held(&driver);
        driver_sleep_to_op(&driver);
    }
    answer_end(&driver, 2 * MS, 100);
    assert_state(&driver, STATE_LEADER);
}

static void end_is_not_believed_before_the_clock_was_watched_for_the_wait(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_watch(&driver, 1 * S);
    driver_sleep_to_op(&driver);
    assert_true(driver.now.boot_ns < 1008 * S);
    answer_end(&driver, 2 * MS, 100);
    assert_waits(&driver, DOUBT_CLOCK);
}

static void end_is_not_believed_when_the_round_trip_is_too_long(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    answer_end(&driver, 500 * MS, 100);
    assert_waits(&driver, DOUBT_CLOCK);
    watched(&driver);
    answer_end(&driver, 500 * MS - 1, 100);
    assert_state(&driver, STATE_LEADER);
}

/* A clock that jumps ahead ends leases early. */
static void end_is_not_believed_after_a_clock_step(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver.server_ahead_us += 600000;
    answer_end(&driver, 2 * MS, 100);
    assert_waits(&driver, DOUBT_CLOCK);
}

static void end_is_not_believed_on_another_server(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver.server = SERVER_B;
    answer_end(&driver, 2 * MS, 100);
    assert_waits(&driver, DOUBT_CLOCK);
}

static void end_is_not_believed_without_a_clock(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_yes(&driver, PRIOR_END);
    reply.server_now_us = 0;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_PENDING);
}

static void none_waits_and_says_why(void **state) {
    (void)state;
    struct driver driver;
    watched(&driver);
    driver_yes(&driver);
    assert_waits(&driver, DOUBT_NO_RECORD);
    watched(&driver);
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.doubt = DOUBT_OTHER_SERVER;
    driver_answer(&driver, reply);
    assert_waits(&driver, DOUBT_OTHER_SERVER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_in_the_past_leads_at_once_when_vouched_for),
        cmocka_unit_test(end_ahead_waits),
        cmocka_unit_test(end_before_a_lease_seen_held_waits),
        cmocka_unit_test(a_lease_seen_by_a_refused_renewal_counts),
        cmocka_unit_test(a_lease_of_ones_own_counts),
        cmocka_unit_test(a_lease_of_ones_own_counts_from_its_grant),
        cmocka_unit_test(the_latest_time_at_which_it_was_held_counts),
        cmocka_unit_test(times_of_another_server_do_not_count),
        cmocka_unit_test(end_is_not_believed_before_the_clock_was_watched_for_the_wait),
        cmocka_unit_test(end_is_not_believed_when_the_round_trip_is_too_long),
        cmocka_unit_test(end_is_not_believed_after_a_clock_step),
        cmocka_unit_test(end_is_not_believed_on_another_server),
        cmocka_unit_test(end_is_not_believed_without_a_clock),
        cmocka_unit_test(none_waits_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
