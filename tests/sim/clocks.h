#ifndef GAVEL_SIM_CLOCKS_H
#define GAVEL_SIM_CLOCKS_H

#include <stdint.h>

/* A clock that runs at its own rate against true time, and can be set. Nanoseconds. */
struct sim_clock {
    int64_t true_ns;  /* the moment of true time at which it last was set */
    int64_t value_ns; /* what it showed then */
    int64_t ppm;      /* how much faster than true time */
};

int64_t sim_clock_read(const struct sim_clock *clock, int64_t true_ns);

/* The first true moment at which it shows value_ns or more; INT64_MAX when that is too far away
 * to be reckoned. */
int64_t sim_clock_reach(const struct sim_clock *clock, int64_t value_ns);

/* From true_ns on it shows value_ns and runs on. */
void sim_clock_set(struct sim_clock *clock, int64_t true_ns, int64_t value_ns);

#endif
