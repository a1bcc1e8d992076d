#ifndef GAVEL_STORE_REDLOCK_REDLOCK_H
#define GAVEL_STORE_REDLOCK_REDLOCK_H

#include "store/store.h"

/*
 * N independent Redis masters as the store (list.h has the URL): the lock is held by whoever holds
 * it on a majority of them. Each node is a Redis store of its own, asked in parallel with the
 * others; election/round.h decides what their answers mean together.
 *
 * Names in the URL must be the same for all replicas: the records carry the list of nodes, and two
 * lists that differ by more than one node are not led under.
 */
extern const struct store_ops redlock_store_ops;

#endif
