#ifndef GAVEL_CLI_EXEC_GUARD_H
#define GAVEL_CLI_EXEC_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * `exec` is two processes, so that the command cannot outlive its supervision. The one that the
 * user started is the guard; it forks the supervisor, which does the work. Both adopt orphans
 * (PR_SET_CHILD_SUBREAPER). If one of them dies the other one kills the command with all that came
 * of it, and only then lets the attachment go: the guard has a copy of its descriptor, the command
 * has none. If the supervisor is stopped, the guard keeps the deadline. What user space cannot do:
 * both killed, or both stopped, at the same time.
 *
 * The guard passes signals on as messages: one that is sent to the process group reaches both of
 * them, and is to arrive once. libc only; one guard a process. Times are nanoseconds.
 */
#define EXEC_GUARD_GONE (-1)

struct exec_shared; /* memory that both see */

struct exec_guard {
    int channel; /* messages; its end is the guard's end */
    struct exec_shared *shared;
};

/* Forks, and returns true in the supervisor; the guard itself ends with the supervisor's exit
 * status, or 125 if it was killed. `mask` receives the signal mask from before: the command's.
 * False: errno says why, nothing was forked. */
bool exec_guard_start(struct exec_guard *guard, sigset_t *mask);

/* The guard keeps this connection open from now on, instead of the last one: only shutdown() or
 * the end of both ends it. False: it could not be told, so do not attach with it. */
bool exec_guard_hold(struct exec_guard *guard, int fd);

/* By when the guard kills whatever runs, by CLOCK_BOOTTIME and by CLOCK_REALTIME, whichever comes
 * first; INT64_MAX: not at all. To be set before anything runs. */
void exec_guard_kill_at(struct exec_guard *guard, int64_t boot_ns, int64_t real_ns);

/* Whether it did so since this was asked last. */
bool exec_guard_has_killed(struct exec_guard *guard);

/* The next signal that the guard got; 0: none for now; or EXEC_GUARD_GONE. */
int exec_guard_signal(struct exec_guard *guard);

#endif
