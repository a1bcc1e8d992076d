#include "driver.h"

#include <string.h>

/* Keeping the lease, and losing it. */

/* Its own moments do not fall on the start to the nanosecond. */
static void expect_a_third_later(const struct driver *driver, int64_t sent_ns) {
    int64_t latest_ns = sent_ns + 10 * S / 3;
    assert_in_range(driver->now.boot_ns, latest_ns - 1 * MS, latest_ns);
}

static void renews_each_third_of_the_ttl_from_the_send(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    for (int i = 0; i < 5; i++) {
        int64_t sent_ns = driver.sent.boot_ns;
        driver_sleep_to_op(&driver);
        assert_int_equal(driver.op, OP_RENEW);
        assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
        expect_a_third_later(&driver, sent_ns);
        driver_pass(&driver, 700 * MS);
        driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
        assert_state(&driver, STATE_LEADER);
        assert_reason(&driver, REASON_RENEWED);
        assert_int_equal(driver.election.view.lease.boot_deadline_ns, driver.sent.boot_ns + 8 * S);
        assert_false(driver.last.changed);
    }
    assert_int_equal(driver_ask(&driver).token, 5000);
}

static void a_no_ends_the_grant_at_once(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.reason = REASON_RENEWAL_REFUSED;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_FOLLOWER);
    assert_reason(&driver, REASON_RENEWAL_REFUSED);
    assert_string_equal(driver.election.view.holder, "pod-b");
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_true(driver.asked.take);
}

static void a_no_ends_a_pending_grant_too(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    driver_sleep_to_op(&driver);
    driver_held(&driver);
    assert_state(&driver, STATE_FOLLOWER);
    assert_int_equal(driver.election.view.wait_until_ns, 0);
}

static void a_lock_that_the_store_knows_is_gone_ends_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    assert_state(&driver, STATE_FOLLOWER);
    assert_reason(&driver, REASON_RENEWAL_REFUSED);
    assert_int_equal(driver_sleep_to_op(&driver).op, OP_ACQUIRE);
}

/* The answer to the renewal that was under way belongs to a grant that is over. */
static void a_lost_lock_is_not_revived_by_the_renewal_under_way(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    driver_yes(&driver);
    assert_state(&driver, STATE_FOLLOWER);
    assert_false(driver_ask(&driver).leader);
}

static void lost_says_nothing_to_a_follower(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    driver_step(&driver, (struct election_event){
                             .type = EVENT_LOST,
                             .reply = {.outcome = OUTCOME_NO, .reason = REASON_RENEWAL_REFUSED}});
    assert_state(&driver, STATE_FOLLOWER);
    assert_reason(&driver, REASON_HELD_BY_OTHER);
}

static void rides_out_trouble_until_the_deadline(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    int64_t deadline_ns = driver.sent.boot_ns + 8 * S;
    int renewals = 0;
    for (;;) {
        driver_sleep_to_op(&driver);
        if (driver.op != OP_RENEW) {
            break;
        }
        assert_true(driver.now.boot_ns < deadline_ns);
        assert_true(driver_ask(&driver).leader);
        renewals++;
        driver_unsure(&driver);
        assert_reason(&driver, REASON_STORE_UNREACHABLE);
    }
    assert_in_range(renewals, 10, 40); /* again and again, with a back-off */
    assert_int_equal(driver.now.boot_ns, deadline_ns);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_DEADLINE);
}

static void trouble_that_ends_in_time_leaves_no_trace(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    uint64_t index = driver.election.view.index;
    driver_sleep_to_op(&driver);
    for (int i = 0; i < 6; i++) {
        driver_unsure(&driver);
        driver_sleep_to_op(&driver);
    }
    driver_yes(&driver);
    assert_true(driver_ask(&driver).leader);
    assert_int_equal(driver.election.view.index, index);
    int64_t sent_ns = driver.sent.boot_ns;
    driver_sleep_to_op(&driver);
    assert_true(driver.now.boot_ns > sent_ns);
    assert_true(driver.now.boot_ns <= sent_ns + 10 * S / 3);
    driver_unsure(&driver); /* the back-off begins anew */
    assert_true(driver.last.wake_ns - driver.now.boot_ns < 20 * MS);
}

static void answers_end_at_the_deadline_without_any_event(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_pass(&driver, driver.sent.boot_ns + 8 * S - 1 * MS - driver.now.boot_ns);
    assert_true(driver_ask(&driver).leader);
    driver_pass(&driver, 1 * MS);
    assert_false(driver_ask(&driver).leader);
}

static void a_lock_past_its_deadline_is_given_back_without_the_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    driver_pass(&driver, 7 * S);
    driver_ask(&driver); /* handed out to the deadline at most */
    driver_sleep_until(&driver, driver.now.boot_ns);
    assert_int_equal(driver.op, OP_RENEW);
    driver_sleep_until(&driver, driver.sent.boot_ns + 8 * S);
    assert_state(&driver, STATE_UNKNOWN);
    driver_unsure(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    assert_int_equal(driver.asked.token, 5000);
    assert_false(driver.asked.clean); /* our nonce proves nothing once the lease is over */
}

/* Whatever a reader was told: the lock is not given away before that has run out. */
static void no_release_while_a_validity_runs(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    int64_t until_ns = driver.sent.boot_ns + 30 * S;
    driver.handouts.until_ns = until_ns;
    driver_sleep_to_op(&driver);
    driver_pass(&driver, 8 * S);
    driver_unsure(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_NONE);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, until_ns);
    assert_false(driver.asked.clean);
}

/* A validity of an earlier grant of ours counts for a late copy of our request too. */
static void a_found_nonce_waits_for_validities_as_well(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    driver_sleep_to_op(&driver);
    driver_ask(&driver);
    driver_held(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, grant.nonce, NONCE_BYTES);
    driver_answer(&driver, reply);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_int_equal(driver.now.boot_ns, driver.handouts.until_ns);
    assert_false(driver.asked.clean);
}

static void a_pending_grant_past_its_deadline_gets_no_mark(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_pend(&driver);
    driver_sleep_to_op(&driver);
    driver_pass(&driver, driver.election.view.lease.boot_deadline_ns - driver.now.boot_ns);
    driver_tick(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_DEADLINE);
    driver_unsure(&driver);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

/* In efficiency it led, but an older leader may still trust its lease for W. */
static void efficiency_marks_only_after_the_wait(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.efficiency = true;
    driver_start(&driver);
    driver_yes(&driver);
    driver_event(&driver, EVENT_RESIGN);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void a_yes_after_the_deadline_is_ignored(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    int64_t deadline_ns = driver.sent.boot_ns + 8 * S;
    driver_sleep_to_op(&driver);
    driver_pass(&driver, deadline_ns - driver.now.boot_ns);
    /* its own send time would make it good for three more seconds; no tick came in between */
    driver_answer(&driver, reply_yes(&driver, PRIOR_NONE));
    assert_state(&driver, STATE_UNKNOWN);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    driver_yes(&driver);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_memory_not_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
}

static void a_yes_after_a_noticed_deadline_is_ignored_too(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_sleep_until(&driver, driver.election.view.lease.boot_deadline_ns);
    assert_state(&driver, STATE_UNKNOWN);
    driver_yes(&driver);
    assert_state(&driver, STATE_UNKNOWN);
    assert_int_equal(driver.op, OP_RELEASE);
}

/* The store speaks from data that are older than our grant: whoever came after is forgotten. */
static void a_yes_from_before_the_grant_ends_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
    reply.token = 0; /* not every store says it */
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_LEADER);
    driver_sleep_to_op(&driver);
    reply = reply_yes(&driver, PRIOR_NONE);
    reply.token = 4999;
    driver_answer(&driver, reply);
    assert_state(&driver, STATE_UNKNOWN);
    assert_reason(&driver, REASON_RENEWAL_REFUSED);
    assert_false(driver_ask(&driver).leader);
    assert_int_equal(driver.op, OP_RELEASE);
    assert_false(driver.asked.clean);
}

static void a_no_to_the_release_ends_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    driver_sleep_to_op(&driver);
    driver_sleep_until(&driver, driver.election.view.lease.boot_deadline_ns);
    driver_unsure(&driver);
    driver_held(&driver);
    assert_int_equal(driver_sleep_to_op(&driver).op, OP_ACQUIRE);
}

/* Nobody waits for it: three attempts, then the key may lapse. */
static void an_unsure_release_is_tried_three_times(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    driver_sleep_to_op(&driver);
    driver_sleep_until(&driver, driver.election.view.lease.boot_deadline_ns);
    driver_unsure(&driver);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(driver.op, OP_RELEASE);
        assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
        driver_unsure(&driver);
        assert_int_equal(driver.op, OP_NONE);
        driver_sleep_to_op(&driver);
    }
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_memory_not_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    struct store_reply reply = reply_held(&driver, "pod-a");
    memcpy(reply.holder_nonce, grant.nonce, NONCE_BYTES);
    driver_answer(&driver, reply); /* it has not: given back now */
    assert_int_equal(driver.op, OP_RELEASE);
    assert_memory_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
    assert_false(driver.asked.clean);
}

static void step_down_ends_it_at_the_first_unsure_answer(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.config.step_down = true;
    driver_lead(&driver);
    struct election_actions grant = driver.asked;
    driver_sleep_to_op(&driver);
    driver_ask(&driver);
    int64_t until_ns = driver.handouts.until_ns;
    driver_unsure(&driver);
    assert_state(&driver, STATE_RESIGNING);
    assert_reason(&driver, REASON_STORE_UNREACHABLE);
    assert_false(driver_ask(&driver).leader);
    while (driver.op != OP_RELEASE) {
        driver_sleep_to_op(&driver);
        if (driver.op == OP_RENEW) {
            driver_yes(&driver);
            assert_state(&driver, STATE_RESIGNING);
        }
    }
    assert_true(driver.now.boot_ns >= until_ns);
    assert_true(driver.asked.clean);
    driver_yes(&driver);
    assert_state(&driver, STATE_FOLLOWER);
    assert_false(driver.last.resigned);
    driver_sleep_to_op(&driver);
    assert_int_equal(driver.op, OP_ACQUIRE);
    assert_true(driver.asked.take); /* it does not stand back */
    assert_memory_not_equal(driver.asked.nonce, grant.nonce, NONCE_BYTES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renews_each_third_of_the_ttl_from_the_send),
        cmocka_unit_test(a_no_ends_the_grant_at_once),
        cmocka_unit_test(a_no_ends_a_pending_grant_too),
        cmocka_unit_test(a_lock_that_the_store_knows_is_gone_ends_it),
        cmocka_unit_test(a_lost_lock_is_not_revived_by_the_renewal_under_way),
        cmocka_unit_test(lost_says_nothing_to_a_follower),
        cmocka_unit_test(rides_out_trouble_until_the_deadline),
        cmocka_unit_test(trouble_that_ends_in_time_leaves_no_trace),
        cmocka_unit_test(answers_end_at_the_deadline_without_any_event),
        cmocka_unit_test(a_lock_past_its_deadline_is_given_back_without_the_mark),
        cmocka_unit_test(no_release_while_a_validity_runs),
        cmocka_unit_test(a_found_nonce_waits_for_validities_as_well),
        cmocka_unit_test(a_pending_grant_past_its_deadline_gets_no_mark),
        cmocka_unit_test(efficiency_marks_only_after_the_wait),
        cmocka_unit_test(a_yes_after_the_deadline_is_ignored),
        cmocka_unit_test(a_yes_after_a_noticed_deadline_is_ignored_too),
        cmocka_unit_test(a_yes_from_before_the_grant_ends_it),
        cmocka_unit_test(a_no_to_the_release_ends_it),
        cmocka_unit_test(an_unsure_release_is_tried_three_times),
        cmocka_unit_test(step_down_ends_it_at_the_first_unsure_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
