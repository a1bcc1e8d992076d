#ifndef GAVEL_SIM_SHRINK_H
#define GAVEL_SIM_SHRINK_H

#include "world.h"

/*
 * Leaves out of a schedule whatever the violation does not need: parts of the network, hosts, the
 * applications, and one fault after another, again and again until nothing more can go. The
 * violation need not stay the same one. `world` is played in; the schedule's left-out sets change.
 * Returns how many schedules were played.
 */
unsigned shrink(struct world *world, struct schedule *schedule);

/* How many faults of the schedule's are still played. */
int shrink_faults(const struct world *world, const struct schedule *schedule);

#endif
