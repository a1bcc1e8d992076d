#include "gavel_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#define NEVER_NS (INT64_MAX / 4)
/* No sleep is longer while something works: poll(2) does not count a suspended host's time. */
#define LOOK_NS (100 * GAVEL_NS_PER_MS)

void gavel_done(struct gavel *gavel) {
    if (gavel->revoked != 0 && gavel->working == NULL && !gavel->stops && gavel->fd >= 0) {
        gavel_say(gavel->fd, "done", gavel->revoked);
        gavel->told.token = 0;
    }
}

/* A thread that lasts as long as the attachment: at the moment of a revocation there may be no new
 * one to be had, and nobody would be told. */
static void *serve_on_revoke(void *context) {
    struct gavel *gavel = context;
    (void)pthread_mutex_lock(&gavel->mutex);
    while (gavel->attached || gavel->stops) {
        if (!gavel->stops) {
            (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
            continue;
        }
        uint64_t token = gavel->stops_token;
        (void)pthread_mutex_unlock(&gavel->mutex);
        gavel->on_revoke(gavel->on_revoke_context, token);
        (void)pthread_mutex_lock(&gavel->mutex);
        /* Again if another one was revoked meanwhile. */
        gavel->stops = gavel->revoked != 0 && gavel->revoked != token;
        gavel->stops_token = gavel->revoked;
        gavel_done(gavel);
        (void)pthread_cond_broadcast(&gavel->changed);
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
    return NULL;
}

static void hear_lease(struct gavel *gavel, const int64_t *numbers) {
    int64_t ttl_ns = numbers[3] * GAVEL_NS_PER_MS;
    int64_t grace_ns = ttl_ns / 10 > 1000 * GAVEL_NS_PER_MS ? ttl_ns / 10 : 1000 * GAVEL_NS_PER_MS;
    gavel->grace_ns = grace_ns < ttl_ns / 5 ? grace_ns : ttl_ns / 5;
    gavel->held = gavel->told = gavel_pushed(numbers);
    (void)gavel_look_ns(gavel);
    (void)pthread_cond_broadcast(&gavel->changed);
}

static void hear_revoke(struct gavel *gavel, uint64_t token) {
    gavel->revoked = token;
    gavel->held.token = 0;
    gavel_cancel(gavel);
    if (gavel->serves && !gavel->stops) {
        gavel->stops = true;
        gavel->stops_token = token;
        (void)pthread_cond_broadcast(&gavel->changed);
    } else if (gavel->runs != NULL) {
        gavel_done(gavel);
    }
}

/* `beat_ns`: how often to be heard of; 0: need not. */
static void hear(struct gavel *gavel, const char *text, int64_t *beat_ns) {
    int64_t numbers[4];
    if (gavel_numbers(text, "lease", 4, numbers) && (uint64_t)numbers[0] != gavel->revoked) {
        hear_lease(gavel, numbers);
    } else if (gavel_numbers(text, "revoke", 2, numbers)) {
        hear_revoke(gavel, (uint64_t)numbers[0]);
    } else if (gavel_numbers(text, "beat", 1, numbers)) {
        *beat_ns = numbers[0] * GAVEL_NS_PER_MS / 4;
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void converse(struct gavel *gavel, struct gavel_line *line) {
    const char *text;
    int64_t beat_ns = 0, beat_at_ns = 0;
    if (gavel_line_read(line, gavel->timeout_ns, &text) != 1 || strcmp(text, "ok") != 0) {
        return;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    gavel->fd = line->fd;
    gavel_say(gavel->fd, "lease", 0);
    for (int got = 0; got >= 0;) {
        int64_t now_ns = gavel_boot_ns(), left_ns = gavel_look_ns(gavel);
        if (beat_ns > 0 && now_ns >= beat_at_ns) {
            beat_at_ns = now_ns + beat_ns;
            gavel_say(gavel->fd, "beat", 0);
        }
        if (gavel->held.token != 0) { /* work may begin while we sleep */
            left_ns = least(left_ns, LOOK_NS);
        }
        left_ns = least(left_ns, beat_ns > 0 ? beat_at_ns - now_ns : NEVER_NS);
        (void)pthread_mutex_unlock(&gavel->mutex);
        got = gavel_line_read(line, left_ns, &text);
        (void)pthread_mutex_lock(&gavel->mutex);
        if (got == 1) {
            hear(gavel, text, &beat_ns);
        }
    }
    gavel->fd = -1;
    (void)pthread_mutex_unlock(&gavel->mutex);
}

/* Whether something may still work by what was told on a connection. gavel_run() knows of its own
 * work; of what else there is we know only that it was told of the lease. */
static bool may_work(const struct gavel *gavel, const struct gavel_line *line) {
    bool knows = line->gone || !gavel->attached || (gavel->runs != NULL && !gavel->serves);
    return gavel->working != NULL || gavel->stops ||
           (!knows && gavel_promise_left_ns(&gavel->told) > 0);
}

/* The mutex is held. The end of a connection says that nothing works any more, and a new one would
 * vouch for what does: neither before that is so, whatever has gone wrong. */
static void wait_for_work(struct gavel *gavel, const struct gavel_line *line) {
    gavel->held.token = gavel->revoked = 0;
    gavel_cancel(gavel);
    while (may_work(gavel, line)) {
        if (gavel->working != NULL || gavel->stops) {
            (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
        } else {
            (void)pthread_mutex_unlock(&gavel->mutex);
            (void)gavel_pause(gavel->detach, LOOK_NS);
            (void)pthread_mutex_lock(&gavel->mutex);
        }
    }
    gavel->told.token = 0;
}

static void *follow(void *context) {
    struct gavel *gavel = context;
    struct gavel_line line;
    do {
        if (gavel_line_open(&line, gavel, "attach", gavel->detach)) {
            converse(gavel, &line);
        }
        (void)pthread_mutex_lock(&gavel->mutex);
        wait_for_work(gavel, &line);
        (void)pthread_mutex_unlock(&gavel->mutex);
        gavel_line_close(&line);
    } while (!gavel_pause(gavel->detach, GAVEL_AGAIN_MS * GAVEL_NS_PER_MS));
    return NULL;
}

/* The mutex is held, but while it waits. Ends the threads once nothing works any more. */
static void leave(struct gavel *gavel, bool follows) {
    eventfd_t count;
    gavel->attached = false;
    gavel->leaves = true;
    gavel->runs = NULL;
    gavel->held.token = 0;
    gavel_cancel(gavel);
    gavel_signal(gavel->detach);
    (void)pthread_cond_broadcast(&gavel->changed);
    (void)pthread_mutex_unlock(&gavel->mutex);
    if (follows) {
        (void)pthread_join(gavel->follower, NULL);
    }
    if (gavel->serves) {
        (void)pthread_join(gavel->server, NULL);
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    (void)eventfd_read(gavel->detach, &count);
    gavel->serves = gavel->leaves = false;
    (void)pthread_cond_broadcast(&gavel->changed);
}

/* The mutex is held. Another thread may be detaching: one at a time. */
static void wait_for_leave(struct gavel *gavel) {
    while (gavel->leaves) {
        (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
    }
}

/* The mutex is held. */
static int start(struct gavel *gavel) {
    bool follows = gavel->attached;
    int failed = 0;
    gavel->attached = true;
    if (gavel->on_revoke != NULL && !gavel->serves) {
        failed = pthread_create(&gavel->server, NULL, serve_on_revoke, gavel);
        gavel->serves = failed == 0;
    }
    if (failed == 0 && !follows) {
        failed = pthread_create(&gavel->follower, NULL, follow, gavel);
    }
    if (failed != 0 && !follows) {
        leave(gavel, false);
    }
    return failed;
}

int gavel_attach(struct gavel *gavel, void (*on_revoke)(void *context, uint64_t token),
                 void *context) {
    if (!gavel_is_own(gavel)) {
        return ECHILD;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    wait_for_leave(gavel);
    void (*before)(void *, uint64_t) = gavel->on_revoke;
    void *before_context = gavel->on_revoke_context;
    if (on_revoke != NULL) {
        gavel->on_revoke = on_revoke;
        gavel->on_revoke_context = context;
    }
    int failed = start(gavel);
    if (failed != 0) {
        gavel->on_revoke = before;
        gavel->on_revoke_context = before_context;
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
    return failed;
}

void gavel_detach(struct gavel *gavel) {
    if (!gavel_is_own(gavel)) {
        return;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    wait_for_leave(gavel);
    if (gavel->attached) {
        leave(gavel, true);
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
}
