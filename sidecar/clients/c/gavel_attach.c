#include "gavel_inside.h"

#include <string.h>
#include <sys/eventfd.h>

#define NEVER_NS (INT64_MAX / 4)
/* No sleep is longer while something works: poll(2) does not count a suspended host's time. */
#define LOOK_NS (100 * GAVEL_NS_PER_MS)

void gavel_done(struct gavel *gavel) {
    if (gavel->revoked != 0 && gavel->working == NULL && !gavel->stops && gavel->fd >= 0) {
        gavel_say(gavel->fd, "done", gavel->revoked);
    }
}

static void *run_on_revoke(void *context) {
    struct gavel *gavel = context;
    (void)pthread_mutex_lock(&gavel->mutex);
    do { /* again if another one was revoked meanwhile */
        uint64_t token = gavel->stops_token;
        (void)pthread_mutex_unlock(&gavel->mutex);
        gavel->on_revoke(gavel->on_revoke_context, token);
        (void)pthread_mutex_lock(&gavel->mutex);
        gavel->stops = gavel->revoked != 0 && gavel->revoked != token;
        gavel->stops_token = gavel->revoked;
    } while (gavel->stops);
    gavel_done(gavel);
    (void)pthread_cond_broadcast(&gavel->changed);
    (void)pthread_mutex_unlock(&gavel->mutex);
    return NULL;
}

static void hear_lease(struct gavel *gavel, const int64_t *numbers) {
    int64_t ttl_ns = numbers[3] * GAVEL_NS_PER_MS;
    int64_t grace_ns = ttl_ns / 10 > 1000 * GAVEL_NS_PER_MS ? ttl_ns / 10 : 1000 * GAVEL_NS_PER_MS;
    gavel->grace_ns = grace_ns < ttl_ns / 5 ? grace_ns : ttl_ns / 5;
    gavel->held = gavel_pushed(numbers);
    (void)gavel_look_ns(gavel);
    (void)pthread_cond_broadcast(&gavel->changed);
}

static void hear_revoke(struct gavel *gavel, uint64_t token) {
    pthread_t thread;
    gavel->revoked = token;
    gavel->held.token = 0;
    gavel_cancel(gavel);
    if (gavel->on_revoke == NULL || gavel->stops) {
        if (gavel->runs) {
            gavel_done(gavel);
        }
        return;
    }
    gavel->stops = true;
    gavel->stops_token = token;
    if (pthread_create(&thread, NULL, run_on_revoke, gavel) == 0) {
        (void)pthread_detach(thread);
    } else {
        gavel->stops = false; /* without `done` the sidecar waits for the end of the lease */
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

static void *follow(void *context) {
    struct gavel *gavel = context;
    struct gavel_line line;
    do {
        if (gavel_line_open(&line, gavel, "attach", gavel->detach)) {
            converse(gavel, &line);
            gavel_line_close(&line);
        }
        (void)pthread_mutex_lock(&gavel->mutex);
        gavel->held.token = gavel->revoked = 0;
        gavel_cancel(gavel);
        while (gavel->working != NULL ||
               (gavel->stops && gavel->attached)) { /* a new attachment would vouch for it */
            (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
        }
        (void)pthread_mutex_unlock(&gavel->mutex);
    } while (!gavel_pause(gavel->detach, GAVEL_AGAIN_MS * GAVEL_NS_PER_MS));
    return NULL;
}

int gavel_attach(struct gavel *gavel, void (*on_revoke)(void *context, uint64_t token),
                 void *context) {
    int failed = 0;
    (void)pthread_mutex_lock(&gavel->mutex);
    if (on_revoke != NULL) {
        gavel->on_revoke = on_revoke;
        gavel->on_revoke_context = context;
    }
    if (!gavel->attached) {
        failed = pthread_create(&gavel->follower, NULL, follow, gavel);
        gavel->attached = failed == 0;
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
    return failed;
}

void gavel_detach(struct gavel *gavel) {
    eventfd_t count;
    (void)pthread_mutex_lock(&gavel->mutex);
    bool attached = gavel->attached;
    gavel->attached = false;
    gavel->held.token = 0;
    (void)pthread_cond_broadcast(&gavel->changed);
    (void)pthread_mutex_unlock(&gavel->mutex);
    if (attached) {
        gavel_signal(gavel->detach);
        (void)pthread_join(gavel->follower, NULL);
        (void)eventfd_read(gavel->detach, &count);
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    while (gavel->stops) {
        (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
}
