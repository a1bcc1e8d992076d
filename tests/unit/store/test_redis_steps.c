/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/steps.h"

#define MARGIN_NS (200 * NS_PER_MS)
#define CLOCK_US INT64_C(1796157414879123)

/* A reply that was under way for 1 ms. */
static int64_t add(struct redis_steps *steps, const char *server, int64_t server_us,
                   int64_t at_ms) {
    struct vouch_sample sample = {.server = server,
                                  .server_now_us = CLOCK_US + server_us,
                                  .sent_ns = at_ms * NS_PER_MS,
                                  .arrived_ns = (at_ms + 1) * NS_PER_MS};
    return redis_steps_add(steps, &sample, MARGIN_NS);
}

static void running_clock_is_left_alone(void **state) {
    (void)state;
    struct redis_steps steps = {.known = false};
    for (int64_t ms = 0; ms < 3000; ms += 7) {
        assert_int_equal(add(&steps, "s:r", ms * 1000, ms), 0);
        assert_false(steps.stands);
    }
}

static void steps_are_measured(void **state) {
    (void)state;
    struct redis_steps steps = {.known = false};
    assert_int_equal(add(&steps, "s:r", 0, 0), 0);
    assert_int_equal(add(&steps, "s:r", 30 * 1000000, 0) / NS_PER_MS, 29999);
    assert_int_equal(add(&steps, "s:r", -30 * 1000000, 1000) / NS_PER_MS, -60999);
    assert_false(steps.stands); /* that was a step back */
    assert_int_equal(add(&steps, "other:r", 60 * 1000000, 1001), 0);
}

static void standing_clock_is_noticed_however_often_it_is_asked(void **state) {
    (void)state;
    static const int64_t every_ms[] = {1, 20, 333, 5000};
    for (size_t i = 0; i < sizeof every_ms / sizeof every_ms[0]; i++) {
        struct redis_steps steps = {.known = false};
        int64_t ms = 0;
        add(&steps, "s:r", 0, ms);
        while (ms <= 200) {
            assert_false(steps.stands);
            ms += every_ms[i];
            add(&steps, "s:r", 0, ms);
        }
        assert_true(steps.stands);
        for (int64_t end = ms + 2000; ms < end; ms += every_ms[i]) {
            add(&steps, "s:r", 0, ms);
            assert_true(steps.stands);
        }
    }
}

static void clock_that_goes_again_is_noticed(void **state) {
    (void)state;
    struct redis_steps steps = {.known = false};
    for (int64_t ms = 0; ms < 1000; ms += 10) {
        add(&steps, "s:r", 0, ms);
    }
    assert_true(steps.stands);
    for (int64_t ms = 0; ms < 500; ms += 10) {
        add(&steps, "s:r", ms * 1000, 1000 + ms);
    }
    assert_false(steps.stands);
}

static void another_servers_clock_is_another(void **state) {
    (void)state;
    struct redis_steps steps = {.known = false};
    for (int64_t ms = 0; ms < 1000; ms += 10) {
        add(&steps, "s:r", 0, ms);
    }
    assert_true(steps.stands);
    add(&steps, "other:r", 0, 1000);
    assert_false(steps.stands);
    add(&steps, "", 0, 2000); /* does not say who it is */
    add(&steps, "", 0, 3000);
    assert_false(steps.stands);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_clock_is_left_alone),
        cmocka_unit_test(steps_are_measured),
        cmocka_unit_test(standing_clock_is_noticed_however_often_it_is_asked),
        cmocka_unit_test(clock_that_goes_again_is_noticed),
        cmocka_unit_test(another_servers_clock_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
