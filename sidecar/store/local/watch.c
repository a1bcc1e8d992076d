#include "store/local/watch.h"

#include "base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define TICK_MS 100
#define TICKS_BETWEEN_TRIES 20
#define READS_MAX 256 /* in one turn; more than the kernel's usual queue has */

#define OF_FILES (IN_CLOSE_WRITE | IN_ATTRIB)
#define OF_FOLDER (IN_DELETE_SELF | IN_MOVE_SELF)

/* Blocks for as long as it takes to find the folder. */
static void try_to_watch(struct watch *watch) {
    watch->new_fd = watch->fd;
    watch->new_wd = -1;
    watch->error_number = 0;
    if (watch->new_fd < 0) {
        watch->new_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    }
    if (watch->new_fd >= 0) {
        watch->new_wd = inotify_add_watch(watch->new_fd, watch->folder,
                                          OF_FILES | OF_FOLDER | IN_ONLYDIR | IN_DONT_FOLLOW);
    }
    if (watch->new_wd < 0) {
        watch->error_number = errno;
    }
}

static void on_work(uv_work_t *work) {
    try_to_watch(work->data);
}

static void release_user(struct watch *watch) {
    if (--watch->users > 0 || !watch->closing) {
        return;
    }
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    watch->closed(watch->context);
}

static void on_ticker(uv_timer_t *ticker);
static void on_readable(uv_poll_t *poll, int status, int events);

static void start_ticking(struct watch *watch) {
    watch->wd = -1;
    watch->ticks = 0;
    uv_update_time(watch->loop);
    uv_timer_start(&watch->ticker, on_ticker, TICK_MS, TICK_MS);
}

static void log_trouble(const struct watch *watch, const char *why) {
    log_event(LOG_WARN, "store-watch", LOG_TEXT("path", watch->folder), LOG_TEXT("text", why),
              LOG_NUMBER("poll_ms", TICK_MS));
}

/* Takes over what a try has got. */
static bool begin(struct watch *watch) {
    watch->fd = watch->new_fd;
    if (watch->fd < 0 || watch->new_wd < 0) {
        return false;
    }
    if (!watch->polls) {
        int status = uv_poll_init(watch->loop, &watch->poll, watch->fd);
        if (status != 0) {
            watch->error_number = -status;
            return false;
        }
        watch->poll.data = watch;
        watch->polls = true;
        watch->users++;
    }
    watch->wd = watch->new_wd;
    uv_poll_start(&watch->poll, UV_READABLE, on_readable);
    return true;
}

static void on_worked(uv_work_t *work, int status) {
    struct watch *watch = work->data;
    watch->working = false;
    if (watch->closing) {
        if (status == 0) {
            watch->fd = watch->new_fd;
        }
        release_user(watch);
        return;
    }
    watch->users--; /* the handles are still there */
    if (status == 0 && begin(watch)) {
        uv_timer_stop(&watch->ticker);
        log_event(LOG_INFO, "store-watch", LOG_TEXT("path", watch->folder),
                  LOG_TEXT("text", "watched again"));
        watch->on_news(watch->context, NULL, WATCH_MISSED); /* of the moments before */
    }
}

static void on_ticker(uv_timer_t *ticker) {
    struct watch *watch = ticker->data;
    if (++watch->ticks % TICKS_BETWEEN_TRIES == 0 && !watch->working) {
        watch->working = true;
        watch->users++;
        watch->work.data = watch;
        (void)uv_queue_work(watch->loop, &watch->work, on_work, on_worked);
    }
    watch->on_news(watch->context, NULL, WATCH_BLIND);
}

/* The folder is no longer the one that the path names, or it cannot be watched any more. */
static void lose(struct watch *watch, const char *why) {
    (void)inotify_rm_watch(watch->fd, watch->wd); /* a folder that was removed has none */
    log_trouble(watch, why);
    start_ticking(watch);
    watch->on_news(watch->context, NULL, WATCH_BLIND);
}

static void tell(struct watch *watch, const struct inotify_event *event) {
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        watch->on_news(watch->context, NULL, WATCH_MISSED);
    } else if (event->wd != watch->wd || watch->wd < 0) {
        return; /* of a watch that was given up */
    } else if ((event->mask & (OF_FOLDER | IN_IGNORED)) != 0) {
        lose(watch, "the folder was removed or moved");
    } else if (event->len > 0) {
        bool closed = (event->mask & IN_CLOSE_WRITE) != 0;
        watch->on_news(watch->context, event->name, closed ? WATCH_CLOSED : WATCH_TOUCHED);
    }
}

void watch_read(struct watch *watch) {
    _Alignas(struct inotify_event) char buffer[4096];
    for (int i = 0; i < READS_MAX && watch->wd >= 0; i++) {
        ssize_t length = read(watch->fd, buffer, sizeof buffer);
        if (length < 0 && errno != EAGAIN && errno != EINTR) {
            lose(watch, strerror(errno));
        }
        if (length <= 0) {
            return;
        }
        const struct inotify_event *event;
        for (const char *at = buffer; at < buffer + length; at += sizeof *event + event->len) {
            event = (const struct inotify_event *)(const void *)at;
            tell(watch, event);
        }
    }
}

static void on_readable(uv_poll_t *poll, int status, int events) {
    struct watch *watch = poll->data;
    (void)events;
    if (status < 0 && watch->wd >= 0) {
        lose(watch, uv_strerror(status));
    }
    watch_read(watch);
    if (watch->wd < 0) {
        uv_poll_stop(&watch->poll); /* what is left is of no use */
    }
}

void watch_init(struct watch *watch, uv_loop_t *loop, const char *folder,
                void (*on_news)(void *context, const char *file, enum watch_news news),
                void *context) {
    memset(watch, 0, sizeof *watch);
    watch->loop = loop;
    watch->folder = folder;
    watch->on_news = on_news;
    watch->context = context;
    watch->fd = watch->wd = -1;
    uv_timer_init(loop, &watch->ticker);
    watch->ticker.data = watch;
    watch->users++;
    try_to_watch(watch);
    if (!begin(watch)) {
        log_trouble(watch, uv_strerror(-watch->error_number));
        start_ticking(watch);
    }
}

static void on_closed(uv_handle_t *handle) {
    release_user(handle->data);
}

void watch_finish(struct watch *watch, void (*closed)(void *context)) {
    watch->closing = true;
    watch->closed = closed;
    if (watch->working) {
        (void)uv_cancel((uv_req_t *)&watch->work);
    }
    if (watch->polls) {
        uv_close((uv_handle_t *)&watch->poll, on_closed);
    }
    uv_close((uv_handle_t *)&watch->ticker, on_closed);
}
