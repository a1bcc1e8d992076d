#ifndef GAVEL_STORE_LOCAL_WATCH_H
#define GAVEL_STORE_LOCAL_WATCH_H

#include <stdbool.h>
#include <uv.h>

/*
 * What happens to the files of DIR/NS, told by inotify(7). Where that cannot be had (no descriptors
 * or watches left, the folder removed or moved), it says so ten times a second, and tries again
 * every other second. One thread, the loop's; does not block it.
 */
enum watch_news {
    WATCH_TOUCHED, /* the file's times were set */
    WATCH_CLOSED,  /* a descriptor open for writing is being closed, maybe by the end of its
                    * process. Locks that it holds go only after this: microseconds, mostly */
    WATCH_MISSED,  /* `file` is NULL: news of any file may have been lost */
    WATCH_BLIND,   /* `file` is NULL: there is no watch now, ten times a second */
};

struct watch {
    uv_loop_t *loop;
    const char *folder;
    /* Must not end the watch. `file` is the name in the folder. */
    void (*on_news)(void *context, const char *file, enum watch_news news);
    void *context;

    int fd; /* of inotify; -1: none yet */
    int wd; /* the watch of the folder; -1: none */
    uv_poll_t poll;
    bool polls;
    uv_timer_t ticker; /* while there is no watch */
    unsigned ticks;
    uv_work_t work; /* a try to set it up again */
    bool working;
    int new_fd, new_wd; /* what the try has got */
    int error_number;   /* why it failed */

    unsigned users; /* handles and jobs that are not gone yet */
    bool closing;
    void (*closed)(void *context);
};

/* `folder` outlives the watch. There must be no watch_init() while an earlier one still closes. */
void watch_init(struct watch *watch, uv_loop_t *loop, const char *folder,
                void (*on_news)(void *context, const char *file, enum watch_news news),
                void *context);

/* Tells now what has happened until now. */
void watch_read(struct watch *watch);

/* No news after this; `closed` is called later with the context. */
void watch_finish(struct watch *watch, void (*closed)(void *context));

#endif
