#include "base/counters.h"

#include "base/memory.h"

#include <stdlib.h>

const double duration_bounds_s[DURATION_BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                    0.05,   0.1,   0.25,   0.5,   1.0,  2.5};

void histogram_add(struct histogram *histogram, double seconds) {
    size_t bucket = 0;
    while (bucket < DURATION_BUCKETS && seconds > duration_bounds_s[bucket]) {
        bucket++;
    }
    histogram->buckets[bucket]++;
    histogram->sum_s += seconds;
    histogram->count++;
}

void counters_transition(struct election_counters *counters, enum election_state to,
                         enum election_reason reason) {
    size_t at = 0;
    while (at < counters->transition_count &&
           (counters->transitions[at].to != to || counters->transitions[at].reason != reason)) {
        at++;
    }
    if (at == counters->transition_count) {
        counters->transitions =
            memory_grow(counters->transitions, at + 1, sizeof *counters->transitions);
        counters->transitions[at] = (struct transition_counter){.to = to, .reason = reason};
        counters->transition_count++;
    }
    counters->transitions[at].count++;
}

void counters_finish(struct election_counters *counters) {
    free(counters->transitions);
    *counters = (struct election_counters){.transitions = NULL};
}

static const struct {
    const char *name;
    unsigned status;
} codes[CODE_COUNT] = {
    [CODE_200] = {"200", 200}, [CODE_204] = {"204", 204},   [CODE_400] = {"400", 400},
    [CODE_404] = {"404", 404}, [CODE_405] = {"405", 405},   [CODE_414] = {"414", 414},
    [CODE_421] = {"421", 421}, [CODE_500] = {"500", 500},   [CODE_503] = {"503", 503},
    [CODE_OK] = {"ok", 0},     [CODE_ERROR] = {"error", 0},
};

const char *counter_code_name(enum counter_code code) {
    return codes[code].name;
}

enum counter_code counter_code_of(unsigned http_status) {
    for (int i = 0; i < CODE_COUNT; i++) {
        if (codes[i].status == http_status) {
            return (enum counter_code)i;
        }
    }
    return CODE_500;
}
