#include "config/nearest.h"

#include "config/options.h"

#include <string.h>

#define NAME_BYTES OPTION_VARIABLE_MAX
#define FAR 3

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters to insert, remove or replace; one row of the usual table. */
static size_t distance(const char *a, const char *b) {
    size_t row[NAME_BYTES + 1];
    size_t length = strlen(b);
    if (strlen(a) > NAME_BYTES || length > NAME_BYTES) {
        return FAR;
    }
    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            size_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = least(changed, least(above, row[j - 1]) + 1);
            corner = above;
        }
    }
    return row[length];
}

static const char *nearest(const char *text, bool variable) {
    const char *best = NULL;
    size_t best_distance = FAR;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        char upper[OPTION_VARIABLE_MAX];
        const char *name = options[id].name;
        size_t away = distance(text, variable ? option_variable(name, upper) : name);
        /* In a short name two letters are too many. */
        if (away < best_distance && away * 2 < strlen(name)) {
            best = name;
            best_distance = away;
        }
    }
    return best;
}

const char *nearest_option(const char *name) {
    return nearest(name, false);
}

const char *nearest_variable(const char *variable) {
    return nearest(variable, true);
}
