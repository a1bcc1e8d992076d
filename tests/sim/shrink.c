#include "shrink.h"

#include <ctype.h>
#include <string.h>

/* "P3: ..." is of the kind P3, wherever that stands; NULL: it names none. */
static const char *promise_of(const char *text) {
    for (; *text != '\0'; text++) {
        if (text[0] == 'P' && isdigit((unsigned char)text[1]) && text[2] == ':') {
            return text;
        }
    }
    return NULL;
}

static bool is_number(char c) {
    return isdigit((unsigned char)c) || c == '.' || c == '-';
}

bool shrink_same_kind(const char *a, const char *b) {
    const char *promise = promise_of(a);
    const char *other = promise_of(b);
    if (promise != NULL || other != NULL) {
        return promise != NULL && other != NULL && promise[1] == other[1];
    }
    for (;; a++, b++) {
        while (is_number(*a)) {
            a++;
        }
        while (is_number(*b)) {
            b++;
        }
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
    }
}

struct shrinking {
    struct schedule *schedule;
    bool (*fails)(void *context, const struct schedule *schedule);
    void *context;
    unsigned played;
};

/* Takes the smaller schedule if it still goes wrong. */
static bool take(struct shrinking *shrinking, const struct schedule *less) {
    shrinking->played++;
    if (!shrinking->fails(shrinking->context, less)) {
        return false;
    }
    *shrinking->schedule = *less;
    return true;
}

/* A run of `size` faults less, at each place. True: some could go. */
static bool without_faults(struct shrinking *shrinking, int size) {
    bool gone = false;
    for (int first = 0; first < 2 * FAULTS_MOST; first += size) {
        struct schedule less = *shrinking->schedule;
        for (int i = first; i < first + size; i++) {
            less.left_out[i] = true;
        }
        if (memcmp(less.left_out, shrinking->schedule->left_out, sizeof less.left_out) != 0) {
            gone = take(shrinking, &less) || gone;
        }
    }
    return gone;
}

static bool without_parts(struct shrinking *shrinking) {
    bool gone = false;
    for (int part = 0; part < PARTS; part++) {
        struct schedule less = *shrinking->schedule;
        less.parts_off |= 1U << part;
        if (less.parts_off != shrinking->schedule->parts_off) {
            gone = take(shrinking, &less) || gone;
        }
    }
    return gone;
}

unsigned shrink(struct schedule *schedule,
                bool (*fails)(void *context, const struct schedule *schedule), void *context) {
    struct shrinking shrinking = {schedule, fails, context, 0};
    bool trace = schedule->trace;
    schedule->trace = false;
    for (bool gone = true; gone;) {
        gone = without_parts(&shrinking);
        for (int size = FAULTS_MOST; size >= 1; size /= 2) {
            gone = without_faults(&shrinking, size) || gone;
        }
    }
    schedule->trace = trace;
    return shrinking.played;
}
