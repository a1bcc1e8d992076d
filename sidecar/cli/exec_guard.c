#include "cli/exec_guard.h"

#include "cli/children.h"
#include "cli/cli.h"
#include "cli/exec_lease.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_MS 2      /* killed and not gone yet */
#define AGAIN_MOST 1000 /* ms, while a stopped supervisor does not take note of it */
#define LOOK_MOST 1000  /* ms: the wall clock may be set at any time */
#define EXIT_GUARD 125

struct exec_shared {
    _Atomic int64_t boot_ns;
    _Atomic int64_t real_ns;
    atomic_bool killed;
};

/* The guard's own side. */
struct watch {
    struct children tree; /* `main` is the supervisor */
    struct exec_shared *shared;
    int signals; /* signalfd */
    int channel;
    int held;     /* the attachment; -1: none */
    int again_ms; /* it has killed; 0: it has not */
};

/* --- the supervisor's side ------------------------------------------------------------------- */

static bool send_to_guard(const struct exec_guard *guard, int fd) {
    char byte = 0;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(guard->channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool exec_guard_hold(struct exec_guard *guard, int fd) {
    return send_to_guard(guard, fd);
}

void exec_guard_kill_at(struct exec_guard *guard, int64_t boot_ns, int64_t real_ns) {
    struct exec_shared *shared = guard->shared;
    bool sooner = real_ns < atomic_exchange(&shared->real_ns, real_ns);
    sooner = boot_ns < atomic_exchange(&shared->boot_ns, boot_ns) || sooner;
    if (sooner) {
        (void)send_to_guard(guard, -1); /* it sleeps until the old one */
    }
}

bool exec_guard_has_killed(struct exec_guard *guard) {
    return atomic_exchange(&guard->shared->killed, false);
}

int exec_guard_signal(struct exec_guard *guard) {
    unsigned char number;
    ssize_t got = recv(guard->channel, &number, 1, MSG_DONTWAIT);
    if (got == 1) {
        return number;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : EXEC_GUARD_GONE;
}

/* --- the guard's side ------------------------------------------------------------------------ */

static void pass_signals_on(const struct watch *watch) {
    struct signalfd_siginfo info;
    while (read(watch->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        unsigned char number = (unsigned char)info.ssi_signo;
        if (number != SIGCHLD) {
            (void)send(watch->channel, &number, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}

static void take_descriptors(struct watch *watch) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    char byte;
    for (;;) {
        struct iovec part = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        if (recvmsg(watch->channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) {
            return;
        }
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
            if (watch->held >= 0) {
                (void)close(watch->held);
            }
            memcpy(&watch->held, CMSG_DATA(header), sizeof watch->held);
        }
    }
}

/* Kills what the supervisor should have ended by now. How long to sleep, for poll(2). */
static int keep_deadline(struct watch *watch) {
    struct exec_shared *shared = watch->shared;
    int64_t boot_ns = atomic_load(&shared->boot_ns);
    if (boot_ns == INT64_MAX) {
        watch->again_ms = 0;
        return -1;
    }
    int64_t left_ns = exec_left_ns(boot_ns, atomic_load(&shared->real_ns));
    if (left_ns > 0) {
        watch->again_ms = 0;
        int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
        return left_ms < LOOK_MOST ? (int)left_ms : LOOK_MOST;
    }
    atomic_store(&shared->killed, true);
    children_kill_below(watch->tree.main);
    watch->again_ms = watch->again_ms == 0 ? AGAIN_MS : watch->again_ms * 2;
    watch->again_ms = watch->again_ms < AGAIN_MOST ? watch->again_ms : AGAIN_MOST;
    return watch->again_ms;
}

/* The supervisor has ended: what it left is ours now. Only then does the attachment end. */
static _Noreturn void end(struct watch *watch) {
    while (!children_reap(&watch->tree)) {
        children_kill_below(getpid());
        (void)poll(NULL, 0, AGAIN_MS);
    }
    if (watch->tree.signal != 0) {
        (void)fprintf(stderr,
                      "%s exec: the process that looked after the command was killed (signal %d), "
                      "so the command was killed too\n",
                      cli_program(), watch->tree.signal);
        exit(EXIT_GUARD);
    }
    exit(watch->tree.status);
}

static _Noreturn void stand_guard(struct watch *watch) {
    (void)signal(SIGTTOU, SIG_IGN); /* its last words may come from the background */
    for (;;) {
        pass_signals_on(watch);
        take_descriptors(watch);
        (void)children_reap(&watch->tree);
        if (watch->tree.main == 0) {
            end(watch);
        }
        int wait_ms = keep_deadline(watch);
        struct pollfd wanted[] = {{.fd = watch->signals, .events = POLLIN},
                                  {.fd = watch->channel, .events = POLLIN}};
        (void)poll(wanted, 2, wait_ms);
    }
}

/* --- the start ------------------------------------------------------------------------------- */

/* -1: errno says why. */
static int take_signals(sigset_t *mask) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};
    sigset_t taken;
    (void)sigemptyset(&taken);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)sigaddset(&taken, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would hide how the command ended */
    return sigprocmask(SIG_BLOCK, &taken, mask) == 0
               ? signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)
               : -1;
}

bool exec_guard_start(struct exec_guard *guard, sigset_t *mask) {
    int ends[2];
    int signals = take_signals(mask);
    if (signals < 0 || !children_adopt() ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    struct exec_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return false;
    }
    atomic_init(&shared->boot_ns, INT64_MAX);
    atomic_init(&shared->real_ns, INT64_MAX);
    atomic_init(&shared->killed, false);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return false;
    }
    if (child > 0) {
        (void)close(ends[0]);
        struct watch watch = {.tree = {.main = child, .group = child},
                              .shared = shared,
                              .signals = signals,
                              .channel = ends[1],
                              .held = -1};
        stand_guard(&watch);
    }
    (void)close(ends[1]);
    (void)close(signals);
    *guard = (struct exec_guard){.channel = ends[0], .shared = shared};
    return children_adopt(); /* that is not inherited */
}
