#ifndef GAVEL_STORE_REDIS_REPLICAS_H
#define GAVEL_STORE_REDIS_REPLICAS_H

#include "election/reply.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What replicas mean for the promise of one leader. A master that is cut off goes on granting, and
 * one of its replicas may be made master elsewhere. Only where each yes was acknowledged by so many
 * that no other part of the group can have as many, a leader on the wrong side comes to an end.
 */
struct redis_replicas {
    unsigned wanted; /* acknowledgements for a yes; 0: none */
    unsigned most;   /* the most replicas that this process has heard of */
};

void redis_replicas_heard(struct redis_replicas *replicas, unsigned count);
/* The warnings (enum warning) of a reply from a master with `attached` replicas. */
uint32_t redis_replicas_warnings(struct redis_replicas *replicas, unsigned attached);
/* What a failover can cost, by all that has been heard. */
enum failover_safety redis_replicas_safety(const struct redis_replicas *replicas);

#endif
