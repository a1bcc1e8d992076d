#ifndef GAVEL_STORE_REDIS_RELEASE_H
#define GAVEL_STORE_REDIS_RELEASE_H

#include "store/store.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* What followers hear when a lock is given back: the release script publishes it on the election's
 * channel as "TOKEN clean NONCE" or "TOKEN unclean NONCE". It is a hint that may come from anybody,
 * by hand without the nonce: it wakes a follower, and proves nothing. */
struct redis_release {
    const char *election; /* within the reply, not terminated */
    size_t length;
    bool clean;
    unsigned char nonce[NONCE_BYTES]; /* the grant's; zeros: not told */
};

/* Whether a message that Redis pushed, an array of three, tells of a release in this namespace.
 * Pure; *release is valid as long as the reply. */
bool redis_release_read(const redisReply *message, const char *namespace_,
                        struct redis_release *release);

#endif
