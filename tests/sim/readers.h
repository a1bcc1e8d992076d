#ifndef GAVEL_SIM_READERS_H
#define GAVEL_SIM_READERS_H

#include "world.h"

/* An application on the host asks, and keeps the validity that it is told until the deadline on
 * its host's BOOTTIME. Nothing while the process is paused or gone. */
void readers_ask(struct world *world, struct host *host);

/* Whether an application that asked now would hear `leader`; leaves no trace. */
bool readers_would_lead(const struct world *world, const struct host *host);

/* Somebody would hear `leader` now: its index, else negative. */
int readers_leader(const struct world *world);

#endif
