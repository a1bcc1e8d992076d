#include "store/redis/barrier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_LEAST_MS 1 /* zero would be for ever */

struct redis_command redis_barrier_command(unsigned replicas, int64_t now_ns, int64_t deadline_ns) {
    char count[16];
    char timeout[24];
    int64_t timeout_ms = (deadline_ns - now_ns) / 2 / NS_PER_MS;
    snprintf(count, sizeof count, "%u", replicas);
    snprintf(timeout, sizeof timeout, "%" PRId64,
             timeout_ms > TIMEOUT_LEAST_MS ? timeout_ms : TIMEOUT_LEAST_MS);
    const char *wait[] = {"WAIT", count, timeout};
    return redis_command(3, wait);
}

enum redis_barrier_result redis_barrier_read(unsigned replicas, const redisReply *reply,
                                             char *text) {
    char said[REDIS_BARRIER_TEXT];
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0) {
        snprintf(text, REDIS_BARRIER_TEXT,
                 "%lld of %u replicas acknowledged (--redis-wait-replicas)", reply->integer,
                 replicas);
        return reply->integer >= (long long)replicas ? REDIS_BARRIER_PASSED : REDIS_BARRIER_SHORT;
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        snprintf(text, REDIS_BARRIER_TEXT, "a strange answer to WAIT");
        return REDIS_BARRIER_LOST;
    }
    redis_failure_text(said, sizeof said, reply->str, reply->len);
    bool denied = redis_failure_of(reply->str) == REDIS_FAILURE_DENIED;
    snprintf(text, REDIS_BARRIER_TEXT, "WAIT is needed for --redis-wait-replicas%s: %.90s",
             denied ? " (allow +wait)" : "", said);
    /* A replica knows no WAIT, and one that has just become a replica ends those under way. */
    return denied ? REDIS_BARRIER_SHORT : REDIS_BARRIER_LOST;
}
