#include "cli/children.h"

#include "cli/cli.h"

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

#define FOUND_MOST 65536
#define PID_MOST (1 << 22) /* the kernel's own limit */

bool children_adopt(void) {
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* In the child. Never returns. */
static void become(char *const *command, const struct exec_lease *lease, const sigset_t *mask,
                   pid_t parent) {
    char text[24];
    (void)setpgid(0, 0);
    if (geteuid() != 0) {
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* who becomes root could not be killed */
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(125); /* it went before that was in force */
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, lease->token);
    if (setenv("GAVEL_TOKEN", text, 1) != 0) {
        _exit(125);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTTOU, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (exec_lease_left_ns(lease) <= KILL_BEFORE_NS) {
        (void)raise(SIGKILL); /* it was stopped since the parent looked */
    }
    (void)execvp(command[0], command);
    int why = errno;
    (void)fprintf(stderr, "%s exec: %s: %s\n", cli_program(), command[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

/* From a terminal the command reads it as it would without us. */
static void hand_over_terminal(struct children *children) {
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
        (void)signal(SIGTTOU, SIG_IGN);
        children->terminal = tcsetpgrp(STDIN_FILENO, children->group) == 0;
    }
}

bool children_start(struct children *children, char *const *command, const struct exec_lease *lease,
                    const sigset_t *mask) {
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return false;
    }
    if (child == 0) {
        become(command, lease, mask, parent);
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

/* What killing has found so far; the first one is where it began, and is spared. */
struct found {
    pid_t processes[FOUND_MOST];
    size_t count;
    unsigned char seen[PID_MOST / 8];
};

static void find(struct found *found, pid_t process) {
    unsigned char bit = (unsigned char)(1U << (process % 8));
    if (process <= 0 || process >= PID_MOST || found->count >= FOUND_MOST ||
        (found->seen[process / 8] & bit) != 0) {
        return;
    }
    found->seen[process / 8] |= bit;
    found->processes[found->count++] = process;
    (void)kill(process, SIGKILL);
}

/* The parent of a process; 0: it has gone. */
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

/* Every process on the host is looked at: where the kernel lists no children. */
static void find_everywhere(struct found *found, pid_t parent) {
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
        if (process > 0 && parent_of(process) == parent) {
            find(found, process);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* Those that one thread has started, or has adopted. False: the kernel does not tell. */
static bool find_of_thread(struct found *found, pid_t parent, const char *thread) {
    char path[96];
    int process;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)parent, thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while (fscanf(file, "%d", &process) == 1) {
        find(found, process);
    }
    (void)fclose(file);
    return true;
}

static void find_children(struct found *found, pid_t parent) {
    char path[64];
    bool known = false;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        known = (entry->d_name[0] != '.' && find_of_thread(found, parent, entry->d_name)) || known;
    }
    if (folder != NULL) {
        (void)closedir(folder);
        if (!known && kill(parent, 0) == 0) {
            find_everywhere(found, parent);
        }
    }
}

/* Who loses its parent meanwhile is adopted by the root: so its own are looked for until none is
 * new. */
void children_kill_below(pid_t root) {
    static struct found found; /* large */
    memset(&found, 0, sizeof found);
    found.processes[found.count++] = root;
    found.seen[root / 8] |= (unsigned char)(1U << (root % 8));
    size_t before = 0;
    while (found.count > before) {
        before = found.count;
        for (size_t i = 0; i < found.count; i++) {
            find_children(&found, found.processes[i]);
        }
    }
}

void children_kill(const struct children *children) {
    children_signal(children, SIGKILL);
    children_kill_below(getpid());
}

bool children_reap(struct children *children) {
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended == children->main) {
            children->main = 0;
            children->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
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
