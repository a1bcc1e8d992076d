#ifndef GAVEL_SIM_RESOURCE_H
#define GAVEL_SIM_RESOURCE_H

#include "world.h"

/*
 * Something outside that keeps the largest token it has seen and refuses lower ones. Applications
 * write to it when they have been told that they lead, and long after: a write that was checked in
 * time may land late. No write of an older grant may be taken after one of a later grant.
 */

/* An application was told that its host leads, with this token, issued as number `order`. */
void resource_told(struct world *world, const struct host *host, uint64_t token, unsigned order);

#endif
