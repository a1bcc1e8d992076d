#include "driver.h"

#include <string.h>

/* Whom it shows as holder, and since when. */

#define TWIN "pod-a~b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5"

static void hold_as(struct driver *driver, const char *holder) {
    if (driver->op == OP_NONE) {
        driver_sleep_to_op(driver);
    }
    driver_pass(driver, 1 * MS);
    driver_answer(driver, reply_held(driver, holder));
}

static uint32_t twin_warning(const struct driver *driver) {
    return driver->election.view.warnings & WARNING_IDENTITY_NOT_UNIQUE;
}

static void tells_since_when_another_holds_it(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    /* What nobody could read as a time is not known. */
    static const int64_t told_ms[] = {1796157414879, 0, -1, 253402300800000, INT64_MAX, 7};
    static const int64_t shown_ms[] = {1796157414879, 0, 0, 0, 0, 7};
    for (size_t i = 0; i < sizeof told_ms / sizeof told_ms[0]; i++) {
        driver_pass(&driver, 1 * MS);
        struct store_reply reply = reply_held(&driver, "pod-b");
        reply.held_since_ms = told_ms[i];
        driver_answer(&driver, reply);
        assert_true(driver.election.view.holder_since_ms == shown_ms[i]);
        driver_sleep_to_op(&driver);
    }
    driver_pass(&driver, 1 * MS);
    struct store_reply reply = reply_no(&driver);
    reply.held_since_ms = 7;
    driver_answer(&driver, reply);
    assert_true(driver.election.view.holder_since_ms == 0); /* it is free */
}

static void tells_since_when_we_hold_it(void **state) {
    (void)state;
    for (int64_t told_ms = 0; told_ms <= 7; told_ms += 7) {
        struct driver driver;
        driver_config(&driver);
        driver.config.efficiency = true;
        driver_start(&driver);
        driver_pass(&driver, 1 * MS);
        struct store_reply reply = reply_yes(&driver, PRIOR_NONE);
        reply.held_since_ms = told_ms;
        driver_answer(&driver, reply);
        int64_t since_ms = told_ms != 0 ? told_ms : driver.now.real_ns / MS; /* by our own clock */
        assert_state(&driver, STATE_LEADER);
        assert_true(driver.election.view.granted_ms == since_ms);
        driver_sleep_to_op(&driver);
        driver_yes(&driver);
        assert_true(driver.election.view.granted_ms == since_ms);
        driver_sleep_to_op(&driver);
        driver_held(&driver);
        assert_state(&driver, STATE_FOLLOWER);
        assert_true(driver.election.view.granted_ms == 0);
    }
}

static void a_holder_with_our_name_is_shown_with_its_nonce(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    hold_as(&driver, "pod-a");
    assert_string_equal(driver.election.view.holder, TWIN);
    hold_as(&driver, "pod-ab"); /* only begins alike */
    assert_string_equal(driver.election.view.holder, "pod-ab");
    hold_as(&driver, "pod");
    assert_string_equal(driver.election.view.holder, "pod");
}

/* For the first W it may be an earlier life of this very replica. */
static void a_holder_with_our_name_is_a_warning_after_the_wait(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    hold_as(&driver, "pod-a");
    int64_t since_ns = driver.now.boot_ns;
    while (driver.now.boot_ns <= since_ns + 10 * S) {
        assert_int_equal(twin_warning(&driver), 0);
        hold_as(&driver, "pod-a");
    }
    assert_int_equal(twin_warning(&driver), WARNING_IDENTITY_NOT_UNIQUE);
    hold_as(&driver, "pod-b");
    assert_int_equal(twin_warning(&driver), 0);
    hold_as(&driver, "pod-a"); /* counted anew */
    assert_int_equal(twin_warning(&driver), 0);
}

static void the_warning_stays_while_nothing_else_was_seen(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    int64_t since_ns = driver.now.boot_ns;
    while (driver.now.boot_ns <= since_ns + 11 * S) {
        hold_as(&driver, "pod-a");
    }
    driver_sleep_to_op(&driver);
    driver_yes(&driver);
    assert_state(&driver, STATE_PENDING);
    assert_int_equal(twin_warning(&driver), WARNING_IDENTITY_NOT_UNIQUE);
}

/* Nothing is proven by a name alone, and a late copy of our own request is no other replica. */
static void only_a_foreign_nonce_is_a_warning(void **state) {
    (void)state;
    for (int own = 0; own <= 1; own++) {
        struct driver driver;
        driver_config(&driver);
        driver_start(&driver);
        struct election_actions first = driver.asked;
        driver_unsure(&driver);
        driver_sleep_to_op(&driver);
        driver_held(&driver);
        int64_t since_ns = driver.now.boot_ns;
        while (driver.now.boot_ns <= since_ns + 30 * S) {
            if (driver.op == OP_NONE) {
                driver_sleep_to_op(&driver);
            }
            struct store_reply reply = reply_held(&driver, "pod-a");
            reply.holder_nonce_known = own;
            memcpy(reply.holder_nonce, first.nonce, own ? NONCE_BYTES : 0);
            driver_answer(&driver,
                          driver.op == OP_RELEASE ? reply_yes(&driver, PRIOR_NONE) : reply);
            assert_int_equal(twin_warning(&driver), 0);
            driver_pass(&driver, 1 * S);
        }
    }
}

static void a_free_lock_has_no_holder(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    driver_sleep_to_op(&driver);
    struct store_reply reply = reply_no(&driver);
    memcpy(reply.holder, "pod-b", sizeof "pod-b"); /* who had it last */
    driver_answer(&driver, reply);
    assert_string_equal(driver.election.view.holder, "");
}

static void the_longest_name_with_a_nonce_fits(void **state) {
    (void)state;
    char name[IDENTITY_MAX + 1];
    memset(name, 'n', IDENTITY_MAX);
    name[IDENTITY_MAX] = '\0';
    struct driver driver;
    driver_config(&driver);
    driver.config.identity = name;
    driver_start(&driver);
    hold_as(&driver, name);
    const char *shown = driver.election.view.holder;
    assert_int_equal(strlen(shown), IDENTITY_MAX + 1 + 2 * NONCE_BYTES);
    assert_memory_equal(shown, name, IDENTITY_MAX);
    assert_string_equal(shown + IDENTITY_MAX, "~b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5");
}

static void a_change_of_holder_counts_the_same_one_does_not(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_follow(&driver, 5 * S);
    uint64_t index = driver.election.view.index;
    hold_as(&driver, "pod-b");
    assert_int_equal(driver.election.view.index, index);
    hold_as(&driver, "pod-c");
    assert_int_equal(driver.election.view.index, index + 1);
    hold_as(&driver, "pod-b");
    assert_int_equal(driver.election.view.index, index + 2);
}

static void warnings_of_the_store_come_and_go(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver_start(&driver);
    struct store_reply reply = reply_held(&driver, "pod-b");
    reply.warnings = WARNING_EVICTION_POLICY;
    driver_answer(&driver, reply);
    assert_int_equal(driver.election.view.warnings, WARNING_EVICTION_POLICY);
    driver_sleep_to_op(&driver);
    driver_unsure(&driver); /* says nothing of it */
    assert_int_equal(driver.election.view.warnings, WARNING_EVICTION_POLICY);
    hold_as(&driver, "pod-b");
    assert_int_equal(driver.election.view.warnings, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_since_when_another_holds_it),
        cmocka_unit_test(tells_since_when_we_hold_it),
        cmocka_unit_test(a_holder_with_our_name_is_shown_with_its_nonce),
        cmocka_unit_test(a_holder_with_our_name_is_a_warning_after_the_wait),
        cmocka_unit_test(the_warning_stays_while_nothing_else_was_seen),
        cmocka_unit_test(only_a_foreign_nonce_is_a_warning),
        cmocka_unit_test(a_free_lock_has_no_holder),
        cmocka_unit_test(the_longest_name_with_a_nonce_fits),
        cmocka_unit_test(a_change_of_holder_counts_the_same_one_does_not),
        cmocka_unit_test(warnings_of_the_store_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
