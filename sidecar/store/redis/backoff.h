#ifndef GAVEL_STORE_REDIS_BACKOFF_H
#define GAVEL_STORE_REDIS_BACKOFF_H

#include <stdint.h>

/* Pauses between attempts to connect: doubling, with jitter, bounded. Zeroed is a fresh one. */
struct redis_backoff {
    unsigned failures; /* in a row */
};

/* Counts a failure and gives the pause after it, in ns: between half of a step and the whole. */
int64_t redis_backoff_fail(struct redis_backoff *backoff, int64_t most_ns);

#endif
