#ifndef GAVEL_SIM_BESIDE_H
#define GAVEL_SIM_BESIDE_H

#include "world.h"

/*
 * Several elections of one process: their steps are mixed in order of time, and each has to go, to
 * the last answer, as it goes alone. Seeds seed, seed + 1, ... False: it did not (printed).
 */
bool beside_run(const struct schedule *schedule, struct stats *stats);

#endif
