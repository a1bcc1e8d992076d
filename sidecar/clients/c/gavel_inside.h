#ifndef GAVEL_CLIENTS_C_GAVEL_INSIDE_H
#define GAVEL_CLIENTS_C_GAVEL_INSIDE_H

#include "gavel.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * What the files of the client share: gavel_line.c (clocks, and a conversation by lines), gavel.c
 * (asking, and changes), gavel_attach.c (the attachment), gavel_run.c (work).
 */
#define GAVEL_NS_PER_MS INT64_C(1000000)
#define GAVEL_AGAIN_MS 100 /* between two attempts to reach the sidecar */
#define GAVEL_LINE_MOST 4096
#define GAVEL_NO_CLOCK_NS (INT64_MAX / 2) /* what a clock that cannot be read shows */

struct gavel_promise { /* a token, and until when on each clock */
    uint64_t token;    /* 0: nothing is promised */
    int64_t boot_ns, real_ns;
};

struct gavel_leadership {
    struct gavel *gavel;
    uint64_t token;
    int fd;    /* eventfd */
    bool over; /* guarded by the mutex */
};

struct gavel_line {
    int fd;    /* -1: closed */
    bool gone; /* the sidecar has ended it */
    int wake;  /* eventfd: readable, nobody is to wait any more */
    size_t length, taken;
    char bytes[GAVEL_LINE_MOST];
};

struct gavel {
    struct sockaddr_un address;
    char election[128];
    int64_t timeout_ns, margin_ns;
    int wake;  /* eventfd: gavel_destroy() */
    pid_t pid; /* whose it is: not that of a child by fork() */

    pthread_t watcher;
    bool watches;
    void (*on_change)(void *context, bool leader, uint64_t token);
    void *on_change_context;

    /* The attachment; guarded by the mutex, as all that follows. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t follower, server; /* the second calls on_revoke */
    bool attached;              /* the follower runs */
    bool serves;                /* the server does */
    bool leaves;                /* both are about to end */
    int detach;                 /* eventfd: it is to end */
    int fd;                     /* of its connection, while it is attached; -1 */
    struct gavel_promise held;  /* of the lease */
    struct gavel_promise told;  /* the last of it, by which something may still work */
    int64_t grace_ns;           /* work is cancelled so long before its end */
    struct gavel_leadership *working;
    struct gavel_leadership *runs; /* of gavel_run(); NULL: of none, or it was detached */
    bool stopped;
    uint64_t revoked; /* the token that must not be used any more; 0: none */
    void (*on_revoke)(void *context, uint64_t token);
    void *on_revoke_context;
    bool stops; /* on_revoke is at it */
    uint64_t stops_token;
};

/* False: a child by fork(). Nothing of the attachment is its own, and the mutex may be held by a
 * thread that it does not have. */
bool gavel_is_own(const struct gavel *gavel);

int64_t gavel_boot_ns(void);
/* Until when, from those clocks on. */
struct gavel_promise gavel_promise_since(uint64_t token, struct gavel_promise since,
                                         int64_t valid_ns);
/* The clocks of this moment; no promise. */
struct gavel_promise gavel_clocks(void);
int64_t gavel_promise_left_ns(const struct gavel_promise *promise);
/* "VERB N N N": exactly so many numbers. False: it is another line. */
bool gavel_numbers(const char *line, const char *verb, size_t count, int64_t *numbers);
/* A line that came unasked: only its deadline counts, and only if it can be one of our clock. */
struct gavel_promise gavel_pushed(const int64_t *numbers);

/* Connects and sends "VERB ELECTION". False: closed. */
bool gavel_line_open(struct gavel_line *line, const struct gavel *gavel, const char *verb,
                     int wake);
/* The next line within the time, without its end: 1. 0: none has come by then. -1: it is over. */
int gavel_line_read(struct gavel_line *line, int64_t timeout_ns, const char **text);
void gavel_line_close(struct gavel_line *line);
/* Sends one line on a descriptor. One that is not taken is as if it had not been said: there are
 * hundreds before it that the sidecar has not read, and the end of a connection would say that
 * all work has stopped. */
void gavel_say(int fd, const char *verb, uint64_t token);

/* Sleeps; true: `wake` has become readable. */
bool gavel_pause(int wake, int64_t sleep_ns);
void gavel_signal(int wake);

/* The mutex is held. Cancels the work; does so if it is time, and gives what is left until then;
 * says "done" if that is owed and nothing works any more. */
void gavel_cancel(struct gavel *gavel);
int64_t gavel_look_ns(struct gavel *gavel);
/* The mutex is held. What is left of the lease: once found over it stays so until there is a newer
 * one, for the wall clock may go back. */
int64_t gavel_held_left_ns(struct gavel *gavel);
void gavel_done(struct gavel *gavel);

#endif
