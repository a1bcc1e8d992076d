#ifndef GAVEL_SIM_SHRINK_H
#define GAVEL_SIM_SHRINK_H

#include "schedule.h"

/*
 * Leaves out of a schedule whatever the violation does not need: parts of the network, hosts, the
 * applications, and one fault after another, again and again until nothing more can go. The
 * violation need not stay the same one. `fails` plays a schedule and says whether it goes wrong.
 * Returns how many were played.
 */
unsigned shrink(struct schedule *schedule,
                bool (*fails)(void *context, const struct schedule *schedule), void *context);

#endif
