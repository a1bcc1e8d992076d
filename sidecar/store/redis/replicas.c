#include "store/redis/replicas.h"

void redis_replicas_heard(struct redis_replicas *replicas, unsigned count) {
    if (count > replicas->most) {
        replicas->most = count;
    }
}

uint32_t redis_replicas_warnings(struct redis_replicas *replicas, unsigned attached) {
    uint32_t warnings = 0;
    redis_replicas_heard(replicas, attached);
    if (attached > 0 && replicas->wanted == 0) {
        warnings |= WARNING_STORE_REPLICATED_ASYNC;
    }
    uint64_t group = (uint64_t)replicas->most + 1;
    if (2 * ((uint64_t)replicas->wanted + 1) <= group) {
        warnings |= WARNING_OVERLAP_POSSIBLE;
    }
    return warnings;
}

enum failover_safety redis_replicas_safety(const struct redis_replicas *replicas) {
    if (replicas->wanted > 0) {
        return FAILOVER_ACKNOWLEDGED;
    }
    return replicas->most > 0 ? FAILOVER_ASYNCHRONOUS : FAILOVER_NONE;
}
