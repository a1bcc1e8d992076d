#ifndef GAVEL_SIM_PAST_H
#define GAVEL_SIM_PAST_H

#include "world.h"

/* Older states of the store's data: what a lagging replica has, what a snapshot brings back. */

/* The data has changed: keeps a copy. */
void past_note(struct world *world);

/* The data as it was lag_ns ago; the oldest known when that is older. */
struct store_copy past_before(const struct world *world, int64_t lag_ns);

/* The newest copy without a key whose last lease was given back with the clean mark. */
bool past_clean(const struct world *world, struct store_copy *copy);

#endif
