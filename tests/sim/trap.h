#ifndef GAVEL_SIM_TRAP_H
#define GAVEL_SIM_TRAP_H

#include <stdbool.h>
#include <stdint.h>

/* The core ends the process where it would change its state against the table: that is a violation
 * in the schedule whose seed `seed` points to by then. The status is 1, or 0 where one is expected.
 */
void trap_watch(const uint64_t *seed, const bool *expected);

#endif
