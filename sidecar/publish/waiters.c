#include "publish/waiters.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>

/* Let go in one turn of the loop: some 30 us each. */
#define BATCH 32

struct waiter {
    struct httpd_hold hold; /* first: what the server gives back is this */
    struct waiters *waiters;
    struct waiter *next, *previous;
    bool listed; /* waits, has not been let go */
    struct board_entry *entry;
    uint64_t index;
    int64_t until_ns; /* CLOCK_BOOTTIME */
};

static void unlist(struct waiter *waiter) {
    struct waiters *waiters = waiter->waiters;
    if (!waiter->listed) {
        return;
    }
    *(waiter->previous != NULL ? &waiter->previous->next : &waiters->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &waiters->last) = waiter->previous;
    waiter->listed = false;
}

static void on_ended(struct httpd_hold *hold) {
    struct waiter *waiter = (struct waiter *)hold;
    unlist(waiter);
    waiter->waiters->counters->waiters--;
    free(waiter);
}

static void on_timer(uv_timer_t *timer);

static void wake_at(struct waiters *waiters, int64_t moment_ns) {
    if (moment_ns >= waiters->next_ns) {
        return;
    }
    waiters->next_ns = moment_ns;
    int64_t left_ns = moment_ns - clock_now().boot_ns;
    uint64_t left_ms = left_ns <= 0 ? 1 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    uv_update_time(waiters->timer.loop); /* the timer counts from the cached time */
    uv_timer_start(&waiters->timer, on_timer, left_ms, 0);
}

static void on_timer(uv_timer_t *timer) {
    struct waiters *waiters = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    int64_t next_ns = NEVER_NS;
    int let_go = 0;
    struct waiter *next = NULL;
    waiters->next_ns = NEVER_NS;
    for (struct waiter *one = waiters->first; one != NULL; one = next) {
        next = one->next;
        if (one->index == one->entry->view.index && now_ns < one->until_ns) {
            next_ns = one->until_ns < next_ns ? one->until_ns : next_ns;
        } else if (let_go++ < BATCH) {
            unlist(one);
            httpd_resume(waiters->httpd, &one->hold);
        } else {
            /* In the next turn: libuv would fire a timer that is due at once in this one. */
            next_ns = now_ns + NS_PER_MS;
            break;
        }
    }
    if (next_ns != NEVER_NS) {
        wake_at(waiters, next_ns);
    }
}

static void on_changed(struct board_observer *observer, struct board_entry *entry) {
    struct waiters *waiters =
        (struct waiters *)((char *)observer - offsetof(struct waiters, observer));
    (void)entry;
    if (waiters->first != NULL) {
        wake_at(waiters, 0); /* from the loop: the change is still being made */
    }
}

void waiters_init(struct waiters *waiters, uv_loop_t *loop, struct board *board,
                  struct counters *counters) {
    *waiters = (struct waiters){.board = board, .counters = counters, .next_ns = NEVER_NS};
    waiters->observer.changed = on_changed;
    uv_timer_init(loop, &waiters->timer);
    waiters->timer.data = waiters;
    board_observe(board, &waiters->observer);
}

void waiters_finish(struct waiters *waiters, uv_close_cb closed) {
    board_unobserve(&waiters->observer);
    uv_close((uv_handle_t *)&waiters->timer, closed);
}

bool waiters_add(struct waiters *waiters, struct board_entry *entry, int64_t wait_ns,
                 struct httpd_reply *reply) {
    if (wait_ns <= 0 || !httpd_can_hold(waiters->httpd)) {
        return false;
    }
    struct waiter *waiter = memory_zeroed(1, sizeof *waiter);
    *waiter = (struct waiter){.hold = {.ended = on_ended},
                              .waiters = waiters,
                              .previous = waiters->last,
                              .listed = true,
                              .entry = entry,
                              .index = entry->view.index,
                              .until_ns = clock_now().boot_ns + wait_ns};
    *(waiters->last != NULL ? &waiters->last->next : &waiters->first) = waiter;
    waiters->last = waiter;
    waiters->counters->waiters++;
    reply->hold = &waiter->hold;
    wake_at(waiters, waiter->until_ns);
    return true;
}
