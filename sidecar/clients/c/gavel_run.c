#include "gavel_inside.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NEVER_NS (INT64_MAX / 4)

void gavel_cancel(struct gavel *gavel) {
    if (gavel->working != NULL && !gavel->working->over) {
        gavel->working->over = true;
        gavel_signal(gavel->working->fd);
    }
}

int64_t gavel_held_left_ns(struct gavel *gavel) {
    int64_t left_ns = gavel_promise_left_ns(&gavel->held);
    if (left_ns <= 0) {
        gavel->held.token = 0;
    }
    return left_ns;
}

int64_t gavel_look_ns(struct gavel *gavel) {
    const struct gavel_leadership *working = gavel->working;
    bool other = working != NULL && gavel->held.token != working->token;
    int64_t left_ns = other ? 0 : gavel_held_left_ns(gavel) - gavel->grace_ns;
    if (left_ns <= 0) {
        gavel_cancel(gavel);
        return NEVER_NS;
    }
    return left_ns;
}

uint64_t gavel_leadership_token(const struct gavel_leadership *leadership) {
    return leadership->token;
}

int gavel_leadership_fd(const struct gavel_leadership *leadership) {
    return leadership->fd;
}

bool gavel_leadership_cancelled(struct gavel_leadership *leadership) {
    if (!gavel_is_own(leadership->gavel)) {
        return true;
    }
    (void)pthread_mutex_lock(&leadership->gavel->mutex);
    (void)gavel_look_ns(leadership->gavel);
    bool over = leadership->over;
    (void)pthread_mutex_unlock(&leadership->gavel->mutex);
    return over;
}

bool gavel_leadership_wait(struct gavel_leadership *leadership, int64_t sleep_ns) {
    (void)gavel_pause(leadership->fd, sleep_ns);
    return gavel_leadership_cancelled(leadership);
}

void gavel_stop(struct gavel *gavel) {
    if (!gavel_is_own(gavel)) {
        return;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    gavel->stopped = true;
    gavel_cancel(gavel);
    (void)pthread_cond_broadcast(&gavel->changed);
    (void)pthread_mutex_unlock(&gavel->mutex);
}

/* Waits until this replica leads, and takes note of the work. False: stopped, or detached. */
static bool next(struct gavel *gavel, struct gavel_leadership *leadership) {
    (void)pthread_mutex_lock(&gavel->mutex);
    while (!gavel->stopped && gavel->runs == leadership &&
           gavel_held_left_ns(gavel) <= gavel->grace_ns + gavel->margin_ns) {
        (void)pthread_cond_wait(&gavel->changed, &gavel->mutex);
    }
    bool leads = !gavel->stopped && gavel->runs == leadership;
    if (leads) {
        leadership->token = gavel->held.token;
        leadership->over = false;
        gavel->working = leadership;
    }
    (void)pthread_mutex_unlock(&gavel->mutex);
    return leads;
}

static void work_ended(struct gavel *gavel) {
    (void)pthread_mutex_lock(&gavel->mutex);
    gavel->working = NULL;
    gavel_done(gavel);
    (void)pthread_cond_broadcast(&gavel->changed);
    (void)pthread_mutex_unlock(&gavel->mutex);
}

/* 0, else errno; then nothing has changed. */
static int begin(struct gavel *gavel, struct gavel_leadership *leadership) {
    if (!gavel_is_own(gavel)) {
        return ECHILD;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    bool busy = gavel->runs != NULL || gavel->working != NULL;
    gavel->runs = busy ? gavel->runs : leadership;
    (void)pthread_mutex_unlock(&gavel->mutex);
    int why = busy ? EBUSY : gavel_attach(gavel, NULL, NULL);
    if (why != 0) {
        return why;
    }
    (void)pthread_mutex_lock(&gavel->mutex);
    bool gone = gavel->runs == NULL; /* detached before it was attached */
    (void)pthread_mutex_unlock(&gavel->mutex);
    if (gone) {
        gavel_detach(gavel);
    }
    return gone ? ECANCELED : 0;
}

/* True: the attachment is still its own, to be ended. */
static bool end(struct gavel *gavel, const struct gavel_leadership *leadership) {
    (void)pthread_mutex_lock(&gavel->mutex);
    bool own = gavel->runs == leadership;
    gavel->runs = own && !gavel->attached ? NULL : gavel->runs;
    bool attached = gavel->attached;
    (void)pthread_mutex_unlock(&gavel->mutex);
    return own && attached; /* its mark stays until then: no other one begins in between */
}

int gavel_run(struct gavel *gavel, int (*work)(struct gavel_leadership *leadership, void *context),
              void *context) {
    struct gavel_leadership leadership = {.gavel = gavel};
    eventfd_t count;
    bool own_end = false;
    int result = -1;
    leadership.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (leadership.fd < 0) {
        return -1;
    }
    int why = begin(gavel, &leadership);
    while (why == 0 && !own_end && next(gavel, &leadership)) {
        result = work(&leadership, context);
        if (!gavel_is_own(gavel)) {
            why = ECHILD; /* a child that was made in there: all else is its parent's */
            break;
        }
        own_end = !gavel_leadership_cancelled(&leadership);
        work_ended(gavel);
        (void)eventfd_read(leadership.fd, &count);
    }
    if (gavel_is_own(gavel) && end(gavel, &leadership) && why == 0) {
        gavel_detach(gavel);
    }
    (void)close(leadership.fd);
    if (!own_end) {
        errno = why != 0 ? why : ECANCELED;
        return -1;
    }
    return result;
}
