#include "store/redis/backoff.h"

#include "base/random.h"
#include "election/instant.h"

#define FIRST_NS (50 * NS_PER_MS)
#define DOUBLINGS_MAX 10

int64_t redis_backoff_fail(struct redis_backoff *backoff, int64_t most_ns) {
    uint32_t random = 0;
    unsigned doublings = backoff->failures < DOUBLINGS_MAX ? backoff->failures : DOUBLINGS_MAX;
    int64_t step_ns = FIRST_NS << doublings;
    if (step_ns > most_ns) {
        step_ns = most_ns;
    }
    backoff->failures++;
    random_bytes(&random, sizeof random);
    return step_ns / 2 + (int64_t)(random % 1000) * (step_ns / 2) / 1000;
}
