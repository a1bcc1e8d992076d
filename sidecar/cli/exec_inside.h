#ifndef GAVEL_CLI_EXEC_INSIDE_H
#define GAVEL_CLI_EXEC_INSIDE_H

/* What the files of `exec` share: the supervisor, which runs the command (exec.c) by what the
 * sidecar says (exec_talk.c). Nobody else includes this. */

#include "cli/ask.h"
#include "cli/children.h"
#include "cli/exec_guard.h"
#include "cli/exec_lease.h"

#include <signal.h>

#define RECONNECT_NS (100 * NS_PER_MS)
#define EXIT_LOST 124
#define EXIT_GAVEL 125
#define NEVER_NS INT64_MAX

struct supervisor {
    const struct arguments *arguments;
    char *const *command;
    sigset_t mask; /* the command's */
    struct exec_guard guard;
    int ended; /* signalfd: a process has */

    struct client client;  /* open while its fd is not -1, connected or not */
    bool connected;        /* it is listened to */
    bool clock_blamed;     /* it was said that the clock is another's */
    bool answered;         /* "ok" has come: attached */
    int64_t reconnect_ns;  /* when to try again */
    int64_t give_up_ns;    /* without ever having been attached */
    char failure[128];     /* why there is no sidecar yet */
    int64_t beat_every_ns; /* 0: none is wanted */
    int64_t beat_ns;

    struct children children;
    struct exec_lease lease;
    int64_t rest_ns;   /* the command has ended: what is left is killed then */
    bool stopping;     /* it was asked to end */
    bool lost;         /* ... because leadership is over, or was about to be */
    uint64_t revoked;  /* owed: "done" with this token; 0: nothing */
    bool asked_to_end; /* by a signal that was passed on */
};

/* One line on stderr; `why` may be "". */
void exec_complain(const char *what, const char *why);

/* Leadership is over, or about to be: SIGTERM, once. */
void exec_ask_to_end(struct supervisor *supervisor);

/* Connects and attaches when that is due and nothing runs. False: end with *status. */
bool exec_connect(struct supervisor *supervisor, int *status);

/* Takes all that the sidecar has said. False: end with *status. */
bool exec_listen(struct supervisor *supervisor, int *status);

/* Sends "VERB[ WHAT]", if there is somebody to hear it. */
void exec_say(struct supervisor *supervisor, const char *verb, const char *what);

/* ... a beat, when one is due. */
void exec_beat(struct supervisor *supervisor);

#endif
