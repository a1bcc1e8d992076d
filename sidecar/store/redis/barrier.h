#ifndef GAVEL_STORE_REDIS_BARRIER_H
#define GAVEL_STORE_REDIS_BARRIER_H

#include "store/redis/command.h"
#include "store/redis/failure.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

/*
 * WAIT: how many replicas have got all that was written on this connection before it. The server
 * reads nothing more from the connection until WAIT is answered, so there is never more than one
 * under way, and its time has to leave room for what comes behind it.
 * https://redis.io/docs/latest/commands/wait/
 */
#define REDIS_BARRIER_TEXT 160

/* WAIT for so many replicas; it takes at most half of the time until `deadline_ns` (BOOTTIME). */
struct redis_command redis_barrier_command(unsigned replicas, int64_t now_ns, int64_t deadline_ns);

enum redis_barrier_result {
    REDIS_BARRIER_PASSED, /* enough of them */
    REDIS_BARRIER_SHORT,  /* `text` says how many; or the server has no WAIT */
    REDIS_BARRIER_LOST,   /* not a master any more, or no answer to WAIT at all: give it up */
};

/* What the server said to WAIT; `text` is for people, with room for REDIS_BARRIER_TEXT. */
enum redis_barrier_result redis_barrier_read(unsigned replicas, const redisReply *reply,
                                             char *text);

#endif
