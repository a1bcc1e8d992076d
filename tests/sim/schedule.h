#ifndef GAVEL_SIM_SCHEDULE_H
#define GAVEL_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is played: a seed, and what is left out of it. Each fault draws from a source of its own, so
 * one that is left out changes nothing of the others' own times and kinds.
 */

#define AT_ONCE_MOST 5000 /* what happens at one moment: more is a loop */
#define FAULTS_MOST 128   /* those of hosts and store, as many again of applications */

/* What can be turned off to make a schedule simpler. */
enum schedule_part {
    PART_SLOW,
    PART_LATE,
    PART_LOST_REQUESTS,
    PART_LOST_REPLIES,
    PART_REPEATED,
    PART_LOST_WAKES,
    PART_APPS,
    PART_FOURTH_HOST,
    PART_THIRD_HOST,
    PART_RATES, /* clocks that run at different rates */
    PARTS
};

struct schedule {
    uint64_t seed;
    bool trace;
    unsigned parts_off; /* a bit for each */
    bool left_out[2 * FAULTS_MOST];
    const unsigned char *tape; /* decides instead of the seed, as far as it goes; NULL: none */
    size_t tape_size;
};

const char *schedule_part_name(enum schedule_part part);

static inline bool schedule_is_off(const struct schedule *schedule, enum schedule_part part) {
    return (schedule->parts_off >> part & 1U) != 0;
}

/* How many of its first faults, of the first and of the second kind, are still played. */
int schedule_faults_left(const struct schedule *schedule, unsigned first, unsigned second);

/* Writes the options that play it again. */
void schedule_print(const struct schedule *schedule);

/* Reads what schedule_print() wrote: the word after --off or --without. False: not understood. */
bool schedule_read_off(struct schedule *schedule, const char *text);
bool schedule_read_without(struct schedule *schedule, const char *text);

#endif
