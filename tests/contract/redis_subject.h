#ifndef GAVEL_CONTRACT_REDIS_SUBJECT_H
#define GAVEL_CONTRACT_REDIS_SUBJECT_H

#include "contract.h"

#include "../unit/store/redis_server.h"
#include "store/redis/redis.h"

#include <signal.h>
#include <stdio.h>

/* What the Redis subjects share; space->data is the server. Each has its own start() and stop(). */

static inline void redis_subject_freeze(struct contract_space *space) {
    redis_server_signal(space->data, SIGSTOP);
}

static inline void redis_subject_thaw(struct contract_space *space) {
    redis_server_signal(space->data, SIGCONT);
}

#define REDIS_SUBJECT(title)                                                                       \
    {                                                                                              \
        .name = (title), .ops = &redis_store_ops, .start = start, .stop = stop,                    \
        .freeze = redis_subject_freeze, .thaw = redis_subject_thaw, .wakes = true, .expires = true \
    }

#endif
