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

/* The unit that `name` begins with, or NULL; "ms" is not "m". */
static size_t unit_of(const char *name) {
    size_t length = strspn(name, "hms");
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0) {
            return i;
        }
    }
    return UNIT_COUNT;
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

static const char wrong_shape[] = "is not a time: write a number and its unit (ms, s, m, h), as in "
                                  "10s, 1.5s or 300ms";
static const char too_long[] = "is too long: at most 10000h";

/* One number with its unit, added to *ns; *text goes on to what follows. `first_unit`: units before
 * that one have been used. */
static const char *parse_part(const char **text, size_t *first_unit, int64_t *ns) {
    size_t whole = 0;
    while (is_digit((*text)[whole])) {
        whole++;
    }
    const char *fraction = *text + whole;
    size_t fraction_count = 0;
    if (*fraction == '.') {
        fraction++;
        while (is_digit(fraction[fraction_count])) {
            fraction_count++;
        }
    }
    const char *unit_text = fraction + fraction_count;
    if (whole == 0 || unit_text[-1] == '.') {
        return wrong_shape;
    }
    if (*unit_text == '\0') {
        return "has no unit: write it with ms, s, m or h, as in 10s or 300ms";
    }
    size_t unit = unit_of(unit_text);
    if (unit == UNIT_COUNT || unit < *first_unit) {
        return wrong_shape;
    }
    int64_t number = 0;
    for (size_t i = 0; i < whole; i++) {
        number = number * 10 + ((*text)[i] - '0');
        if (number > MOST_NS / units[unit].ns) {
            return too_long;
        }
    }
    *ns += number * units[unit].ns + fraction_ns(fraction, fraction_count, units[unit].ns);
    *first_unit = unit + 1;
    *text = unit_text + strlen(units[unit].name);
    return *ns > MOST_NS ? too_long : NULL;
}

const char *duration_parse(const char *text, int64_t *ns) {
    int64_t sum_ns = 0;
    size_t first_unit = 0;
    do {
        const char *wrong = parse_part(&text, &first_unit, &sum_ns);
        if (wrong != NULL) {
            return wrong;
        }
    } while (*text != '\0');
    *ns = sum_ns;
    return NULL;
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
