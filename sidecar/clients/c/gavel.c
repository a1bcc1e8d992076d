#include "gavel_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NEVER_NS (INT64_MAX / 4)

/* --- life ------------------------------------------------------------------------------------ */

struct gavel *gavel_create(const char *path, const char *election) {
    const char *given = getenv("GAVEL_SOCKET");
    path = path != NULL ? path : given != NULL ? given : "/run/gavel/gavel.sock";
    struct gavel *gavel = calloc(1, sizeof *gavel);
    if (gavel == NULL) {
        return NULL;
    }
    bool named = strlen(election) < sizeof gavel->election && strpbrk(election, " \r\n") == NULL;
    if (!named || strlen(path) >= sizeof gavel->address.sun_path) {
        free(gavel);
        errno = named ? ENAMETOOLONG : EINVAL;
        return NULL;
    }
    gavel->address.sun_family = AF_UNIX;
    memcpy(gavel->address.sun_path, path, strlen(path));
    memcpy(gavel->election, election, strlen(election));
    gavel->timeout_ns = 1000 * GAVEL_NS_PER_MS;
    gavel->margin_ns = 20 * GAVEL_NS_PER_MS;
    gavel->fd = -1;
    gavel->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gavel->detach = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gavel->wake < 0 || gavel->detach < 0) {
        (void)close(gavel->wake);
        (void)close(gavel->detach);
        free(gavel);
        errno = EMFILE;
        return NULL;
    }
    gavel->pid = getpid();
    (void)pthread_mutex_init(&gavel->mutex, NULL);
    (void)pthread_cond_init(&gavel->changed, NULL);
    return gavel;
}

bool gavel_is_own(const struct gavel *gavel) {
    return getpid() == gavel->pid;
}

void gavel_destroy(struct gavel *gavel) {
    if (gavel == NULL) {
        return;
    }
    if (!gavel_is_own(gavel)) { /* the parent's threads wait for what it shares */
        (void)close(gavel->wake);
        (void)close(gavel->detach);
        free(gavel);
        return;
    }
    gavel_detach(gavel);
    if (gavel->watches) {
        gavel_signal(gavel->wake);
        (void)pthread_join(gavel->watcher, NULL);
    }
    (void)close(gavel->wake);
    (void)close(gavel->detach);
    (void)pthread_mutex_destroy(&gavel->mutex);
    (void)pthread_cond_destroy(&gavel->changed);
    free(gavel);
}

void gavel_set_times(struct gavel *gavel, int64_t timeout_ns, int64_t margin_ns) {
    gavel->timeout_ns = timeout_ns;
    gavel->margin_ns = margin_ns;
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct gavel_promise ask(struct gavel *gavel) {
    struct gavel_promise since = gavel_clocks(), promise = {.token = 0}; /* before it is sent */
    struct gavel_line line;
    const char *text;
    int64_t numbers[3];
    if (!gavel_line_open(&line, gavel, "check", gavel_is_own(gavel) ? gavel->wake : -1)) {
        return promise;
    }
    int64_t left_ns = since.boot_ns + gavel->timeout_ns - gavel_boot_ns();
    if (gavel_line_read(&line, left_ns, &text) == 1 && gavel_numbers(text, "leader", 3, numbers)) {
        promise = gavel_promise_since((uint64_t)numbers[0], since, numbers[1] * GAVEL_NS_PER_MS);
    }
    gavel_line_close(&line);
    return promise;
}

static uint64_t valid_token(const struct gavel *gavel, const struct gavel_promise *promise) {
    return gavel_promise_left_ns(promise) > gavel->margin_ns ? promise->token : 0;
}

uint64_t gavel_token(struct gavel *gavel) {
    struct gavel_promise promise = {.token = 0};
    bool attached = false;
    /* In a child what is held is not told of its end, and the mutex may be another thread's. */
    if (gavel_is_own(gavel)) {
        (void)pthread_mutex_lock(&gavel->mutex);
        (void)gavel_held_left_ns(gavel);
        promise = gavel->held;
        attached = gavel->attached;
        (void)pthread_mutex_unlock(&gavel->mutex);
    }
    if (!attached) {
        promise = ask(gavel);
    }
    return valid_token(gavel, &promise);
}

bool gavel_is_leader(struct gavel *gavel) {
    return gavel_token(gavel) != 0;
}

int gavel_require_leader(struct gavel *gavel, uint64_t *token) {
    *token = gavel_token(gavel);
    if (*token == 0) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

/* --- changes --------------------------------------------------------------------------------- */

static void tell(struct gavel *gavel, uint64_t *told, const struct gavel_promise *promise) {
    uint64_t token = valid_token(gavel, promise);
    if (token != *told) {
        *told = token;
        gavel->on_change(gavel->on_change_context, token != 0, token);
    }
}

static void watch(struct gavel *gavel, struct gavel_line *line, uint64_t *told) {
    const char *text;
    int64_t numbers[3];
    struct gavel_promise held = {.token = 0};
    int64_t left_ns = gavel->timeout_ns;
    for (bool heard = false;;) {
        int got = gavel_line_read(line, left_ns, &text);
        if (got < 0 || (got == 0 && !heard)) {
            return;
        }
        heard = true;
        held.token = 0;
        if (got == 1 && gavel_numbers(text, "leader", 3, numbers)) {
            held = gavel_pushed(numbers);
        }
        tell(gavel, told, &held);
        left_ns = gavel_promise_left_ns(&held) - gavel->margin_ns;
        left_ns = left_ns > 0 ? left_ns + 1 : NEVER_NS;
    }
}

static void *run_watch(void *context) {
    struct gavel *gavel = context;
    struct gavel_line line;
    const struct gavel_promise none = {.token = 0};
    uint64_t told = UINT64_MAX; /* nothing yet */
    do {
        if (gavel_line_open(&line, gavel, "watch", gavel->wake)) {
            watch(gavel, &line, &told);
            gavel_line_close(&line);
        }
        tell(gavel, &told, &none);
    } while (!gavel_pause(gavel->wake, GAVEL_AGAIN_MS * GAVEL_NS_PER_MS));
    return NULL;
}

int gavel_on_change(struct gavel *gavel,
                    void (*callback)(void *context, bool leader, uint64_t token), void *context) {
    if (!gavel_is_own(gavel)) {
        return ECHILD;
    }
    if (gavel->watches) {
        return EBUSY;
    }
    gavel->on_change = callback;
    gavel->on_change_context = context;
    int failed = pthread_create(&gavel->watcher, NULL, run_watch, gavel);
    gavel->watches = failed == 0;
    return failed;
}
