#ifndef GAVEL_SIM_PLAN_H
#define GAVEL_SIM_PLAN_H

#include "world.h"

/*
 * What a seed decides before it starts: hosts and their settings, clocks, the network, how many
 * faults of which kind.
 *
 * P3 asks that any two clocks differ by less than half the margin in a ttl, and that --wait is not
 * below any ttl in use; the settings keep to that.
 */
void plan_make(struct world *world);

#endif
