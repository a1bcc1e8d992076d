#ifndef GAVEL_CLI_CHILDREN_H
#define GAVEL_CLI_CHILDREN_H

#include "cli/exec_lease.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The command that `exec` runs, in a process group of its own, with everything that comes of it:
 * the caller is its reaper (PR_SET_CHILD_SUBREAPER), so whatever is orphaned below it is adopted.
 * libc only; one command at a time.
 */
struct children {
    pid_t main;    /* the command, also its group; 0: not running */
    pid_t group;   /* as long as anything of it may run; 0: nothing */
    int status;    /* the command's exit status as a shell shows it, once it has ended */
    int signal;    /* ... and the signal that ended it; 0: none did */
    bool terminal; /* the terminal was handed over to it */
};

/* Whatever is orphaned below this process is adopted by it from now on. False: errno says why. */
bool children_adopt(void);

/* Starts the command with GAVEL_TOKEN; when its turn comes too late for the lease, what was started
 * kills itself instead of becoming the command. `mask` is its signal mask. False: errno says why.
 * Where it cannot be executed it ends with 126 or 127, as under env(1). */
bool children_start(struct children *children, char *const *command, const struct exec_lease *lease,
                    const sigset_t *mask);

/* Sends a signal to its group. */
void children_signal(const struct children *children, int number);

/* SIGKILL to the group and to all that descend from this process. */
void children_kill(const struct children *children);

/* SIGKILL to all that descend from that process, which itself is spared. */
void children_kill_below(pid_t root);

/* Takes note of those that have ended. True: nothing of it is left. */
bool children_reap(struct children *children);

#endif
