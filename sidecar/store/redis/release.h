#ifndef GAVEL_STORE_REDIS_RELEASE_H
#define GAVEL_STORE_REDIS_RELEASE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* What followers hear when a lock is given back: the release script publishes it on the election's
 * channel as "TOKEN clean" or "TOKEN unclean". It is a hint that may come from anybody: it wakes a
 * follower, and proves nothing. */
struct redis_release {
    const char *election; /* within the reply, not terminated */
    size_t length;
    bool clean;
};

/* Whether a message that Redis pushed, an array of three, tells of a release in this namespace.
 * Pure; *release is valid as long as the reply. */
bool redis_release_read(const redisReply *message, const char *namespace_,
                        struct redis_release *release);

#endif
