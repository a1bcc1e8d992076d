#include "driver.h"

/* Who asks when: many elections in one process, many candidates of one election. */

/* Elections that all begin to lead at once share the third of the ttl evenly, each for good. None
 * is ever renewed later than a third after the last time. */
static void renewals_are_spread_over_the_third(void **state) {
    (void)state;
    enum { ELECTIONS = 640, SLOTS = 64 };
    int slots[SLOTS] = {0};
    for (uint64_t i = 0; i < ELECTIONS; i++) {
        struct driver driver;
        driver_config(&driver);
        driver.first_index = i;
        driver_lead(&driver);
        int64_t start_ns = driver.sent.boot_ns;
        int64_t sent_ns = start_ns;
        for (int round = 0; round < 4; round++) {
            driver_sleep_to_op(&driver);
            assert_int_equal(driver.op, OP_RENEW);
            int64_t after_ns = driver.sent.boot_ns - sent_ns;
            assert_in_range(after_ns, 1, 10 * S / 3);
            if (round > 0) {
                assert_in_range(after_ns, 10 * S / 3 - 1 * MS, 10 * S / 3);
            }
            sent_ns = driver.sent.boot_ns;
            driver_yes(&driver);
        }
        slots[(sent_ns - start_ns) % (10 * S / 3) * SLOTS / (10 * S / 3)]++;
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_in_range(slots[i], 1, 2 * ELECTIONS / SLOTS);
    }
}

/* Where the store makes one question of many requests they stay together. */
static void one_pace_keeps_them_together(void **state) {
    (void)state;
    int64_t moment_ns = 0;
    for (uint64_t i = 0; i < 64; i++) {
        struct driver driver;
        driver_config(&driver);
        driver.config.one_pace = true;
        driver.first_index = i;
        driver_lead(&driver);
        driver_sleep_to_op(&driver);
        assert_true(i == 0 || driver.sent.boot_ns == moment_ns);
        moment_ns = driver.sent.boot_ns;
    }
}

/* After an outage, when all are answered at once, each finds its own moments again. */
static void after_an_outage_they_are_spread_again(void **state) {
    (void)state;
    int64_t moments_ns[2];
    for (int outage = 0; outage < 2; outage++) {
        struct driver driver;
        driver_config(&driver);
        driver.first_index = 23;
        driver_lead(&driver);
        int64_t start_ns = driver.sent.boot_ns;
        driver_sleep_to_op(&driver);
        for (int i = 0; i < 5 * outage; i++) {
            driver_unsure(&driver);
            driver_sleep_to_op(&driver);
        }
        for (int i = 0; i < 2; i++) {
            driver_yes(&driver);
            driver_sleep_to_op(&driver);
        }
        moments_ns[outage] = (driver.sent.boot_ns - start_ns) % (10 * S / 3);
    }
    assert_in_range(moments_ns[1], moments_ns[0] - 1 * MS, moments_ns[0] + 1 * MS);
}

/* A hundred of them are no more than a hundred questions in a third of the ttl. */
static void asks_once_in_a_third_of_the_ttl(void **state) {
    (void)state;
    struct driver driver;
    driver_config(&driver);
    driver.first_index = 17;
    driver_follow(&driver, 9 * S);
    int64_t start_ns = driver.now.boot_ns;
    int asked = 0;
    while (driver.now.boot_ns < start_ns + 100 * S) {
        driver_sleep_to_op(&driver);
        driver_pass(&driver, 1 * MS);
        struct store_reply reply = reply_held(&driver, "pod-b");
        reply.expires_in_ns = 9 * S; /* its leader renews it */
        driver_answer(&driver, reply);
        asked++;
    }
    assert_in_range(asked, 30, 31);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewals_are_spread_over_the_third),
        cmocka_unit_test(one_pace_keeps_them_together),
        cmocka_unit_test(after_an_outage_they_are_spread_again),
        cmocka_unit_test(asks_once_in_a_third_of_the_ttl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
