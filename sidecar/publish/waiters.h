#ifndef GAVEL_PUBLISH_WAITERS_H
#define GAVEL_PUBLISH_WAITERS_H

#include "base/counters.h"
#include "base/httpd.h"
#include "publish/board.h"

/*
 * HTTP requests that wait for a change of an election. They are capped by the server's hold_limit,
 * wait no longer than they asked for, and are let go a few at a time: a change that all of them
 * wait for must not hold up those who only ask. Loop thread only.
 */
struct waiters {
    struct board *board;
    struct counters *counters;
    struct httpd *httpd;
    struct waiter *first, *last; /* in the order they came */
    uv_timer_t timer;
    int64_t next_ns; /* CLOCK_BOOTTIME for which the timer is set; NEVER_NS: it is not */
    struct board_observer observer;
};

/* The caller's memory; `waiters->httpd` has to be set before the first of the others. */
void waiters_init(struct waiters *waiters, uv_loop_t *loop, struct board *board,
                  struct counters *counters);
/* After the server has gone, and its holds with it. `closed` is called once, later. */
void waiters_finish(struct waiters *waiters, uv_close_cb closed);

/* Has the request wait until the entry's index is another one, for at most wait_ns. False: there is
 * no room, or nothing to wait for. */
bool waiters_add(struct waiters *waiters, struct board_entry *entry, int64_t wait_ns,
                 struct httpd_reply *reply);

#endif
