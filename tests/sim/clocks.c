#include "clocks.h"

#define MILLION INT64_C(1000000)
#define FARTHEST_NS (INT64_MAX / MILLION)

int64_t sim_clock_read(const struct sim_clock *clock, int64_t true_ns) {
    int64_t passed_ns = true_ns - clock->true_ns;
    return clock->value_ns + passed_ns + passed_ns * clock->ppm / MILLION;
}

int64_t sim_clock_reach(const struct sim_clock *clock, int64_t value_ns) {
    int64_t ahead_ns = 0;
    if (__builtin_sub_overflow(value_ns, clock->value_ns, &ahead_ns) || ahead_ns > FARTHEST_NS) {
        return INT64_MAX;
    }
    if (ahead_ns <= 0) {
        return clock->true_ns;
    }
    int64_t true_ns = clock->true_ns + ahead_ns * MILLION / (MILLION + clock->ppm);
    while (sim_clock_read(clock, true_ns) < value_ns) {
        true_ns++;
    }
    return true_ns;
}

void sim_clock_set(struct sim_clock *clock, int64_t true_ns, int64_t value_ns) {
    clock->true_ns = true_ns;
    clock->value_ns = value_ns;
}
