#ifndef GAVEL_STORE_REDIS_WATCHER_H
#define GAVEL_STORE_REDIS_WATCHER_H

#include "base/log.h"
#include "store/redis/backoff.h"
#include "store/redis/gate.h"

/*
 * Listens to one Sentinel at a time for a new master, and goes on to the next one every few
 * seconds, since one that is cut off from the others hears of nothing. What it tells is a hint,
 * which makes moving over quicker: an old master that still answers does not say that it is one.
 */
struct redis_watcher_setup {
    struct redis_gate_setup gate; /* its callbacks are the watcher's own */
    struct redis_sentinels *sentinels;
    /* A Sentinel (its index) says that the master is there: when asked, which is often what is
     * known already, or since that has just changed. May close. */
    void (*told)(void *context, const struct redis_master *master, size_t teller, bool asked);
    void *context;
};

enum redis_watcher_state {
    REDIS_WATCHER_IDLE,
    REDIS_WATCHER_CONNECTING,
    REDIS_WATCHER_ASKING, /* SUBSCRIBE is sent */
    REDIS_WATCHER_LISTENING,
    REDIS_WATCHER_PAUSING,
};

struct redis_watcher {
    struct redis_watcher_setup setup;
    struct redis_gate gate;
    uv_timer_t timer;
    enum redis_watcher_state state;
    struct redis_stream *stream;
    size_t current; /* index of the Sentinel */
    struct redis_backoff backoff;
    struct log_limit log_limit;
};

/* The caller's memory; it must outlive what is counted in the gate's `lives`. */
void redis_watcher_init(struct redis_watcher *watcher, const struct redis_watcher_setup *setup);
/* Begins, once. */
void redis_watcher_start(struct redis_watcher *watcher);
/* No callback comes any more. */
void redis_watcher_close(struct redis_watcher *watcher);

#endif
