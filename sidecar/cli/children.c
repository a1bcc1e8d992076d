#include "cli/children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MOST 64 /* of killing: each finds what the one before has left */
#define FOUND_MOST 1024

bool children_adopt(void) {
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* In the child. Never returns. */
static void become(char *const *command, uint64_t token, int inherited, const sigset_t *mask,
                   pid_t parent) {
    char text[24];
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(125); /* it went before that was in force */
    }
    (void)fcntl(inherited, F_SETFD, 0);
    (void)snprintf(text, sizeof text, "%" PRIu64, token);
    if (setenv("GAVEL_TOKEN", text, 1) != 0) {
        _exit(125);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTTOU, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(command[0], command);
    int why = errno;
    (void)fprintf(stderr, "gavel exec: %s: %s\n", command[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

/* From a terminal the command reads it as it would without us. */
static void hand_over_terminal(struct children *children) {
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
        (void)signal(SIGTTOU, SIG_IGN);
        children->terminal = tcsetpgrp(STDIN_FILENO, children->group) == 0;
    }
}

bool children_start(struct children *children, char *const *command, uint64_t token, int inherited,
                    const sigset_t *mask) {
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return false;
    }
    if (child == 0) {
        become(command, token, inherited, mask, parent);
    }
    (void)setpgid(child, child); /* whoever comes first */
    *children = (struct children){.main = child, .group = child};
    hand_over_terminal(children);
    return true;
}

void children_signal(const struct children *children, int number) {
    if (children->group > 0) {
        (void)kill(-children->group, number);
    }
}

/* The parent of a process, by /proc; 0: it has gone. */
static pid_t parent_of(pid_t process) {
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* a name may hold anything */
    int parent = 0;
    char state;
    if (name_end == NULL || sscanf(name_end + 1, " %c %d", &state, &parent) != 2) {
        return 0;
    }
    return parent;
}

static bool contains(const pid_t *found, size_t count, pid_t process) {
    for (size_t i = 0; i < count; i++) {
        if (found[i] == process) {
            return true;
        }
    }
    return false;
}

/* Adds those whose parent is among the found; returns how many there are now. */
static size_t add_children(pid_t *found, size_t count) {
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
        if (process > 0 && count < FOUND_MOST && !contains(found, count, process) &&
            contains(found, count, parent_of(process))) {
            found[count++] = process;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

void children_kill(const struct children *children) {
    pid_t found[FOUND_MOST] = {getpid()};
    size_t count = 1;
    children_signal(children, SIGKILL);
    for (int round = 0; round < ROUNDS_MOST; round++) {
        size_t more = add_children(found, count);
        for (size_t i = count; i < more; i++) {
            (void)kill(found[i], SIGKILL);
        }
        if (more == count) {
            return;
        }
        count = more;
    }
}

bool children_reap(struct children *children) {
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended == children->main) {
            children->main = 0;
            children->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    if (ended < 0 && errno == ECHILD && children->group != 0) {
        children->group = 0;
        if (children->terminal) {
            (void)tcsetpgrp(STDIN_FILENO, getpgrp());
        }
    }
    return children->group == 0;
}
