#ifndef GAVEL_TESTS_UNIT_STORE_LOCAL_DESK_H
#define GAVEL_TESTS_UNIT_STORE_LOCAL_DESK_H

/* A local store with its loop, and what it was told. */

#include "local_kit.h"

#include "base/clock.h"

#include <string.h>

#define PATIENT_MS INT64_C(10000) /* for what must come */

static uv_mutex_t mutex; /* the calls come from the thread pool too */

static inline unsigned read_count(const unsigned *count) {
    uv_mutex_lock(&mutex);
    unsigned value = *count;
    uv_mutex_unlock(&mutex);
    return value;
}

/* One replica on elections "a" and "b". */
struct desk {
    uv_loop_t loop;
    struct store_setup setup;
    struct store_status status;
    struct store *store;
    unsigned answers;
    struct store_event answer; /* the last */
    unsigned wakes[2];
    bool clean; /* the last WAKE's */
    bool closed;
};

static inline void on_event(void *context, const struct store_event *event) {
    struct desk *desk = context;
    if (event->type == STORE_WAKE) {
        desk->wakes[event->election]++;
        desk->clean = event->clean;
    } else {
        desk->answers++;
        desk->answer = *event;
    }
}

static inline void on_closed(void *context) {
    struct desk *desk = context;
    desk->closed = true;
}

static inline void desk_open(struct desk *desk, const struct local_kit *kit) {
    static const char *const names[] = {"a", "b"};
    struct error error = {""};
    memset(desk, 0, sizeof *desk);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    desk->setup = (struct store_setup){.loop = &desk->loop,
                                       .url = kit->url,
                                       .namespace_ = "default",
                                       .identity = "three",
                                       .elections = names,
                                       .election_count = 2,
                                       .ttl_ns = KIT_TTL_NS,
                                       .status = &desk->status,
                                       .on_event = on_event,
                                       .context = desk};
    desk->store = local_store_ops.open(&desk->setup, &error);
    assert_non_null(desk->store);
}

static inline void desk_close(struct desk *desk) {
    local_store_ops.close(desk->store, on_closed, desk);
    uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_true(desk->closed);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
}

static inline void on_timer(uv_timer_t *timer) {
    *(bool *)timer->data = true;
}

/* Turns the loop until the count is reached or the time is over; false: it is not reached. */
static inline bool desk_run(struct desk *desk, int64_t time_ms, const unsigned *count,
                            unsigned least) {
    bool over = false;
    uv_timer_t timer;
    uv_timer_init(&desk->loop, &timer);
    timer.data = &over;
    uv_update_time(&desk->loop);
    uv_timer_start(&timer, on_timer, (uint64_t)time_ms, 0);
    while (!over && !(count != NULL && read_count(count) >= least)) {
        uv_run(&desk->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&desk->loop, UV_RUN_NOWAIT);
    return count != NULL && read_count(count) >= least;
}

static inline void desk_expect_quiet(struct desk *desk, int64_t time_ms) {
    desk->wakes[0] = desk->wakes[1] = 0;
    desk_run(desk, time_ms, NULL, 0);
    assert_int_equal(desk->wakes[0], 0);
    assert_int_equal(desk->wakes[1], 0);
}

static inline void desk_expect_wake(struct desk *desk, int64_t within_ms, bool clean) {
    if (!desk_run(desk, within_ms, &desk->wakes[0], 1)) {
        fail_msg("no WAKE within %d ms", (int)within_ms);
    }
    assert_int_equal(desk->clean, clean);
}

static inline enum outcome desk_do(struct desk *desk, enum store_event_type type, unsigned nonce,
                                   uint64_t clean_token) {
    struct store_request request = kit_request(nonce);
    unsigned least = desk->answers + 1;
    request.clean = clean_token != 0;
    request.token = clean_token;
    request.timeout_ns = PATIENT_MS * NS_PER_MS;
    if (type == STORE_ACQUIRED) {
        local_store_ops.acquire(desk->store, &request);
    } else {
        local_store_ops.release(desk->store, &request);
    }
    assert_true(desk_run(desk, PATIENT_MS, &desk->answers, least));
    return desk->answer.reply.outcome;
}

#endif
