#include "config/duration.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_NS (INT64_C(10000) * 3600 * 1000000000)

static const struct {
    const char *name;
    int64_t ns;
} units[] = {{"h", INT64_C(3600000000000)},
             {"m", INT64_C(60000000000)},
             {"s", INT64_C(1000000000)},
             {"ms", INT64_C(1000000)}};
#define UNIT_COUNT (sizeof units / sizeof units[0])

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int64_t unit_of(const char *name) {
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strcmp(units[i].name, name) == 0) {
            return units[i].ns;
        }
    }
    return 0;
}

/* The digits of a fraction, as parts of `unit`; digits after the ninth are dropped. */
static int64_t fraction_ns(const char *digits, size_t count, int64_t unit_ns) {
    int64_t sum_ns = 0;
    int64_t scale = 1;
    for (size_t i = 0; i < count && i < 9; i++) {
        scale *= 10;
        /* unit_ns is at most 3.6e12 and scale at most 1e9: both factors are kept small. */
        sum_ns += unit_ns / scale * (digits[i] - '0') + unit_ns % scale * (digits[i] - '0') / scale;
    }
    return sum_ns;
}

const char *duration_parse(const char *text, int64_t *ns) {
    static const char shape[] = "is not a time: write a number and its unit (ms, s, m, h), as in "
                                "10s, 1.5s or 300ms";
    size_t whole = 0;
    while (is_digit(text[whole])) {
        whole++;
    }
    const char *fraction = text + whole;
    size_t fraction_count = 0;
    if (*fraction == '.') {
        fraction++;
        while (is_digit(fraction[fraction_count])) {
            fraction_count++;
        }
        if (fraction_count == 0) {
            return shape;
        }
    }
    const char *unit = fraction + fraction_count;
    if (whole == 0) {
        return shape;
    }
    if (*unit == '\0') {
        return "has no unit: write it with ms, s, m or h, as in 10s or 300ms";
    }
    int64_t unit_ns = unit_of(unit);
    if (unit_ns == 0) {
        return shape;
    }
    int64_t number = 0;
    for (size_t i = 0; i < whole; i++) {
        number = number * 10 + (text[i] - '0');
        if (number > MOST_NS / unit_ns) {
            return "is too long: at most 10000h";
        }
    }
    *ns = number * unit_ns + fraction_ns(fraction, fraction_count, unit_ns);
    return *ns > MOST_NS ? "is too long: at most 10000h" : NULL;
}

const char *duration_format(int64_t ns, char *text, size_t size) {
    size_t unit = UNIT_COUNT - 1;
    for (size_t i = 0; i + 1 < UNIT_COUNT; i++) {
        /* Hours and minutes only when they come out even. */
        if (ns >= units[i].ns && (ns % units[i].ns == 0 || strcmp(units[i].name, "s") == 0)) {
            unit = i;
            break;
        }
    }
    int64_t unit_ns = units[unit].ns;
    int64_t rest_ns = ns % unit_ns;
    if (rest_ns == 0) {
        (void)snprintf(text, size, "%lld%s", (long long)(ns / unit_ns), units[unit].name);
        return text;
    }
    int digits = unit_ns == INT64_C(1000000) ? 6 : 9;
    char fraction[32];
    (void)snprintf(fraction, sizeof fraction, "%0*lld", digits, (long long)rest_ns);
    for (int last = digits - 1; fraction[last] == '0'; last--) {
        fraction[last] = '\0';
    }
    (void)snprintf(text, size, "%lld.%s%s", (long long)(ns / unit_ns), fraction, units[unit].name);
    return text;
}
