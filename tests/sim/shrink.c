#include "shrink.h"

#include <string.h>

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
