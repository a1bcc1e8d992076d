#ifndef GAVEL_CLI_CHILDREN_H
#define GAVEL_CLI_CHILDREN_H

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
    bool terminal; /* the terminal was handed over to it */
};

/* Whatever is orphaned below this process is adopted by it from now on. False: errno says why. */
bool children_adopt(void);

/* Starts the command with GAVEL_TOKEN. `inherited` stays open in it: its end is then the end of
 * everything that has it. `mask` is its signal mask. False: errno says why. Where it cannot be
 * executed it ends with 126 or 127, as under env(1). */
bool children_start(struct children *children, char *const *command, uint64_t token, int inherited,
                    const sigset_t *mask);

/* Sends a signal to its group. */
void children_signal(const struct children *children, int number);

/* SIGKILL to the group and to all that descend from this process. */
void children_kill(const struct children *children);

/* Takes note of those that have ended. True: nothing of it is left. */
bool children_reap(struct children *children);

#endif
