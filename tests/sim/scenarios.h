#ifndef GAVEL_SIM_SCENARIOS_H
#define GAVEL_SIM_SCENARIOS_H

#include "world.h"

/*
 * Runs of faults that belong together: situations that two leaders would come from, and that
 * single faults at random bring about too seldom. The candidates know nothing of them.
 */

#define SCENARIOS 11
#define SCENARIO_SHORT_GRANT 9 /* needs different ttls */

/* Starts one; nothing while another is under way. */
void scenarios_start(struct world *world, int kind);

#endif
