#ifndef GAVEL_BASE_COUNTERS_H
#define GAVEL_BASE_COUNTERS_H

#include "election/states.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All counters of the process; whoever causes a change counts it here, the metrics page reads.
 * Loop thread only.
 */
enum counter_listener { LISTENER_HTTP, LISTENER_HEALTH, LISTENER_SOCKET, LISTENER_COUNT };
enum counter_op { COUNTER_ACQUIRE, COUNTER_RENEW, COUNTER_RELEASE, COUNTER_OP_COUNT };
enum counter_result { RESULT_YES, RESULT_NO, RESULT_UNSURE, RESULT_COUNT };
/* Reply codes that are counted apart: HTTP status, and on the socket ok and error. */
enum counter_code {
    CODE_200,
    CODE_204,
    CODE_400,
    CODE_404,
    CODE_405,
    CODE_414,
    CODE_421,
    CODE_500,
    CODE_503,
    CODE_OK,
    CODE_ERROR,
    CODE_COUNT
};

#define DURATION_BUCKETS 12
/* Upper bounds in seconds; the last bucket of a histogram is +Inf. */
extern const double duration_bounds_s[DURATION_BUCKETS];

struct histogram {
    uint64_t buckets[DURATION_BUCKETS + 1]; /* not cumulative */
    double sum_s;
    uint64_t count;
};
void histogram_add(struct histogram *histogram, double seconds);

/* The code's label: "200", "ok". */
const char *counter_code_name(enum counter_code code);
/* The counter of an HTTP status; unknown ones count as 500. */
enum counter_code counter_code_of(unsigned http_status);

/* How often one change of state has happened. */
struct transition_counter {
    uint64_t count;
    enum election_state to;
    enum election_reason reason;
};

struct election_counters {
    struct transition_counter *transitions; /* those that have happened: a few of many; heap */
    size_t transition_count;
    int64_t last_renewal_real_ns; /* 0: never */
    uint64_t attached_apps;       /* gauge */
};
void counters_transition(struct election_counters *counters, enum election_state to,
                         enum election_reason reason);
/* Frees what is inside. */
void counters_finish(struct election_counters *counters);

struct counters {
    uint64_t api_requests[LISTENER_COUNT][CODE_COUNT];
    uint64_t watchers; /* gauge: connections of the socket that watch */
    uint64_t waiters;  /* gauge: HTTP requests that wait for a change */
    uint64_t store_requests[COUNTER_OP_COUNT][RESULT_COUNT];
    struct histogram store_durations[COUNTER_OP_COUNT];
    double loop_lag_s; /* gauge: the largest between the last two heartbeats */
    uint64_t loop_stalls;
    uint64_t clock_steps_real;
    struct election_counters *elections; /* one for each board entry */
};

#endif
