#include "shrink.h"

#include <string.h>

/* Whether it still goes wrong. */
static bool fails(struct world *world, const struct schedule *schedule, unsigned *played) {
    static struct stats unused;
    world_run(world, schedule, &unused);
    ++*played;
    return world->violation[0] != '\0';
}

/* A run of `size` faults less, at each place. True: some could go. */
static bool without_faults(struct world *world, struct schedule *schedule, int size,
                           unsigned *played) {
    bool gone = false;
    for (int first = 0; first < 2 * FAULTS_MOST; first += size) {
        struct schedule less = *schedule;
        for (int i = first; i < first + size; i++) {
            less.left_out[i] = true;
        }
        if (memcmp(less.left_out, schedule->left_out, sizeof less.left_out) != 0 &&
            fails(world, &less, played)) {
            *schedule = less;
            gone = true;
        }
    }
    return gone;
}

static bool without_parts(struct world *world, struct schedule *schedule, unsigned *played) {
    bool gone = false;
    for (int part = 0; part < PARTS; part++) {
        struct schedule less = *schedule;
        less.parts_off |= 1U << part;
        if (less.parts_off != schedule->parts_off && fails(world, &less, played)) {
            *schedule = less;
            gone = true;
        }
    }
    return gone;
}

unsigned shrink(struct world *world, struct schedule *schedule) {
    unsigned played = 0;
    bool trace = schedule->trace;
    schedule->trace = false;
    for (bool gone = true; gone;) {
        gone = without_parts(world, schedule, &played);
        for (int size = FAULTS_MOST; size >= 1; size /= 2) {
            gone = without_faults(world, schedule, size, &played) || gone;
        }
    }
    schedule->trace = trace;
    return played;
}

int shrink_faults(const struct world *world, const struct schedule *schedule) {
    int left = 0;
    for (unsigned i = 0; i < world->faults && i < FAULTS_MOST; i++) {
        left += schedule->left_out[i] ? 0 : 1;
    }
    for (unsigned i = 0; i < world->app_faults && i < FAULTS_MOST; i++) {
        left += schedule->left_out[FAULTS_MOST + i] ? 0 : 1;
    }
    return left;
}
