#include "page_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Which of the two clocks for the time of day a reader goes by. */

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define BOOT (500 * S)
#define REAL (1796000000 * S)

static int64_t boot_ns, real_ns, coarse_ns;
static unsigned exact_reads;

static int64_t read_clock(enum page_clock clock) {
    exact_reads += clock == PAGE_CLOCK_REALTIME ? 1 : 0;
    return clock == PAGE_CLOCK_BOOTTIME   ? boot_ns
           : clock == PAGE_CLOCK_REALTIME ? real_ns
                                          : coarse_ns;
}

/* A leader's page that was written at BOOT and REAL, good for eight seconds. */
static struct gavel_page_answer check(int64_t passed_ns, int64_t stepped_ns, int64_t behind_ns) {
    static _Atomic uint64_t words[GAVEL_PAGE_BYTES / sizeof(uint64_t)];
    int64_t doubted_ns = 0;
    struct gavel_page_answer answer;
    words[GAVEL_PAGE_WORD_STATE] = GAVEL_PAGE_LEADER;
    words[GAVEL_PAGE_WORD_TOKEN] = 7;
    words[GAVEL_PAGE_WORD_BOOT_DEADLINE] = BOOT + 8 * S;
    words[GAVEL_PAGE_WORD_REAL_DEADLINE] = REAL + 8 * S;
    words[GAVEL_PAGE_WORD_RENEWED] = BOOT;
    words[GAVEL_PAGE_WORD_VALID_FOR] = 60 * S;
    boot_ns = BOOT + passed_ns;
    real_ns = REAL + passed_ns + stepped_ns;
    coarse_ns = behind_ns == INT64_MAX ? INT64_MAX : real_ns - behind_ns;
    exact_reads = 0;
    page_read(words, read_clock, &doubted_ns, &answer, NULL);
    return answer;
}

static void a_tick_that_comes_late_costs_nothing(void **state) {
    (void)state;
    for (int64_t behind_ns = 0; behind_ns <= 20 * MS; behind_ns += MS) {
        assert_int_equal(check(3 * S, 0, behind_ns).valid_ns, 5 * S);
        assert_int_equal(exact_reads, 0);
    }
}

static void ticks_that_do_not_come_are_seen(void **state) {
    (void)state;
    assert_int_equal(check(3 * S, 0, 21 * MS).valid_ns, 5 * S);
    assert_int_equal(exact_reads, 1);
    /* Stepped beyond the deadline after the last tick but one: it does not look so by the coarse
     * clock alone. */
    assert_false(check(3 * S, 6 * S, 4 * S).leader);
    assert_int_equal(exact_reads, 1);
}

static void a_step_is_seen_at_once(void **state) {
    (void)state;
    assert_int_equal(check(3 * S, 2 * S, 3 * MS).valid_ns, 3 * S);
    assert_int_equal(exact_reads, 1);
    assert_false(check(8 * S - 10 * MS, 15 * MS, 3 * MS).leader); /* however small: it is ahead */
    assert_int_equal(exact_reads, 1);
    assert_false(check(3 * S, 5 * S, 3 * MS).leader);
    /* Backwards: BOOTTIME tells. */
    assert_int_equal(check(3 * S, -3600 * S, 3 * MS).valid_ns, 5 * S);
}

static void a_kernel_without_the_coarse_clock_will_do(void **state) {
    (void)state;
    assert_int_equal(check(3 * S, 0, INT64_MAX).valid_ns, 5 * S);
    assert_int_equal(exact_reads, 1);
    assert_false(check(3 * S, 5 * S, INT64_MAX).leader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tick_that_comes_late_costs_nothing),
        cmocka_unit_test(ticks_that_do_not_come_are_seen),
        cmocka_unit_test(a_step_is_seen_at_once),
        cmocka_unit_test(a_kernel_without_the_coarse_clock_will_do),
    };
    return cmocka_run_group_tests_name("page_clocks", tests, NULL, NULL);
}
