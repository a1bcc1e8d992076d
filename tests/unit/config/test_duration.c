#include "config/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define S (1000 * MS)

static void good_times(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"300ms", 300 * MS},
        {"10s", 10 * S},
        {"1.5s", 1500 * MS},
        {"2m", 120 * S},
        {"1h", 3600 * S},
        {"0.5h", 1800 * S},
        {"0s", 0},
        {"0.000000001s", 1},
        {"1.000000001s", S + 1},
        {"007s", 7 * S},
        {"1.5ms", 1500000},
        {"0.0000000001s", 0},
        {"10000h", 36000000 * S},
        {"1.123456789999h", 4044444440400},
        {"1m30s", 90 * S},
        {"1h2m3s4ms", 3723 * S + 4 * MS},
        {"1m0.5s", 60500 * MS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ns = -1;
        assert_null(duration_parse(cases[i].text, &ns));
        assert_int_equal(ns, cases[i].ns);
    }
}

static void wrong_times(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",    "s",     "ms",     "-1s",       "+1s",  "1 s",  " 1s",   "1s ",    "1e3s",  "1,5s",
        ".5s", "1.s",   "1.5.5s", "1S",        "1sec", "1us",  "1ns",   "1d",     "30s1m", "inf",
        "nan", "0x10s", "1\ns",   "\xC2\xB5s", "1s1s", "1m30", "1ms1m", "1m 30s",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ns;
        const char *wrong = duration_parse(texts[i], &ns);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, "10s"));
    }
}

static void a_bare_number_is_told_its_units(void **state) {
    (void)state;
    int64_t ns;
    assert_non_null(strstr(duration_parse("10", &ns), "has no unit"));
    assert_non_null(strstr(duration_parse("0", &ns), "has no unit"));
    assert_non_null(strstr(duration_parse("1.5", &ns), "has no unit"));
}

static void too_long_is_not_wrapped(void **state) {
    (void)state;
    static const char *const texts[] = {
        "10001h",
        "10000.1h",
        "5124096h", /* 2^64 ns and a little */
        "36000001s",
        "99999999999999999999s",
        "9223372036854775807ms",
        "18446744073709551616ms",
        "99999999999999999999999999999999999999999999999999999999999999999999h",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ns;
        assert_non_null(strstr(duration_parse(texts[i], &ns), "too long"));
    }
}

static void is_shown_as_it_is_written(void **state) {
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0ms"},          {1, "0.000001ms"},         {300 * MS, "300ms"},      {10 * S, "10s"},
        {1500 * MS, "1.5s"}, {66666666, "66.666666ms"}, {60 * S, "1m"},           {90 * S, "90s"},
        {3600 * S, "1h"},    {S + 1, "1.000000001s"},   {36000000 * S, "10000h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DURATION_TEXT_MAX];
        int64_t ns = -1;
        assert_string_equal(duration_format(cases[i].ns, text, sizeof text), cases[i].text);
        assert_null(duration_parse(text, &ns));
        assert_int_equal(ns, cases[i].ns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_times),
        cmocka_unit_test(wrong_times),
        cmocka_unit_test(a_bare_number_is_told_its_units),
        cmocka_unit_test(too_long_is_not_wrapped),
        cmocka_unit_test(is_shown_as_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
