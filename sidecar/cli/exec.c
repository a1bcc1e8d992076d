#include "cli/cli.h"
#include "cli/exec_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/*
 * Runs a command only while this replica leads. The sidecar tells the lease; that it ends in time
 * is our own doing, by our own clock: a sidecar that is dead or stopped has nothing to say. This
 * is the supervisor's process; the guard around it is exec_guard.c.
 */

#define REST_NS NS_PER_S /* for what the command leaves running when it ends by itself */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- what is due ----------------------------------------------------------------------------- */

/* What the guard ends if we do not. */
static void tell_guard(struct supervisor *supervisor, bool runs) {
    const struct exec_lease *lease = &supervisor->lease;
    exec_guard_kill_at(&supervisor->guard, runs ? lease->deadline_ns - KILL_BEFORE_NS : NEVER_NS,
                       runs ? lease->real_ns - KILL_BEFORE_NS : NEVER_NS);
}

/* The command has ended, or was ended; nothing of it is left. False: so have we. */
static bool after_command(struct supervisor *supervisor, int *status) {
    bool own_end = !supervisor->lost;
    tell_guard(supervisor, false);
    supervisor->stopping = supervisor->lost = false;
    supervisor->rest_ns = NEVER_NS;
    if (own_end || supervisor->asked_to_end || supervisor->arguments->once) {
        if (own_end) {
            exec_say(supervisor, "resign", "");
        }
        *status = own_end ? supervisor->children.status : EXIT_LOST;
        return false;
    }
    return true;
}

static bool look_after_command(struct supervisor *supervisor, int *status) {
    struct children *children = &supervisor->children;
    if (children->group == 0) {
        return true;
    }
    bool ran = children->main != 0;
    bool gone = children_reap(children);
    int64_t left = exec_lease_left_ns(&supervisor->lease);
    bool over = exec_guard_has_killed(&supervisor->guard) || left <= KILL_BEFORE_NS;
    supervisor->lost |= over && ran && children->main == 0 && children->signal == SIGKILL;
    if (gone) {
        return after_command(supervisor, status);
    }
    int64_t now_ns = client_now_ns();
    if (left <= KILL_BEFORE_NS || now_ns >= supervisor->rest_ns) {
        supervisor->lost = supervisor->lost || children->main != 0;
        children_kill(children);
        return !children_reap(children) || after_command(supervisor, status);
    }
    if (children->main == 0 && supervisor->rest_ns == NEVER_NS) {
        supervisor->rest_ns = now_ns + REST_NS;
        children_signal(children, SIGTERM);
    } else if (left <= supervisor->lease.grace_ns && children->main != 0) {
        exec_ask_to_end(supervisor);
    }
    return true;
}

static bool start_command(struct supervisor *supervisor, int *status) {
    char number[24];
    bool idle = supervisor->children.group == 0;
    if (idle && supervisor->revoked != 0) {
        (void)snprintf(number, sizeof number, "%" PRIu64, supervisor->revoked);
        exec_say(supervisor, "done", number);
        supervisor->revoked = 0;
        supervisor->lease.token = 0;
    }
    if (!idle || !supervisor->answered ||
        exec_lease_left_ns(&supervisor->lease) <= supervisor->lease.grace_ns + KILL_BEFORE_NS) {
        return true;
    }
    supervisor->lost = supervisor->stopping = false;
    tell_guard(supervisor, true);
    if (!children_start(&supervisor->children, supervisor->command, &supervisor->lease,
                        &supervisor->mask)) {
        exec_complain("cannot start a process", strerror(errno));
        *status = EXIT_GAVEL;
        return false;
    }
    return true;
}

/* For poll(2): until the next thing that is due by itself. */
static int wait_ms(const struct supervisor *supervisor) {
    int64_t now_ns = client_now_ns();
    int64_t wait_ns = NS_PER_S;
    if (!supervisor->connected && supervisor->children.group == 0) {
        wait_ns = least(wait_ns, supervisor->reconnect_ns - now_ns);
    }
    if (supervisor->beat_every_ns > 0) {
        wait_ns = least(wait_ns, supervisor->beat_ns - now_ns);
    }
    if (supervisor->children.group != 0) {
        int64_t left = exec_lease_left_ns(&supervisor->lease);
        bool asks = !supervisor->stopping && supervisor->children.main != 0;
        wait_ns = least(wait_ns, left - (asks ? supervisor->lease.grace_ns : KILL_BEFORE_NS));
        wait_ns = supervisor->rest_ns == NEVER_NS ? wait_ns
                                                  : least(wait_ns, supervisor->rest_ns - now_ns);
        /* Killed and not gone yet: it is looked for again, without haste. */
        wait_ns = left <= KILL_BEFORE_NS && wait_ns < 5 * NS_PER_MS ? 5 * NS_PER_MS : wait_ns;
    }
    return wait_ns <= 0 ? 0 : (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* --- signals --------------------------------------------------------------------------------- */

static bool ends_us(int number) {
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* The guard was killed: nothing may be left before the attachment ends, which it does with us.
 * Nobody waits for our status, and nothing is left to be written. */
static _Noreturn void end_all(struct supervisor *supervisor) {
    struct children *children = &supervisor->children;
    children->terminal = false; /* whoever started the guard has taken it back */
    while (!children_reap(children)) {
        children_kill(children);
        (void)poll(NULL, 0, 2);
    }
    _exit(EXIT_GAVEL);
}

/* Forwarded to the command; without one, those that end a program end this one. */
static bool take_signals(struct supervisor *supervisor, int *status) {
    int number;
    while ((number = exec_guard_signal(&supervisor->guard)) > 0) {
        if (supervisor->children.group != 0) {
            /* Not SIGHUP: to many programs it says "read your settings again". */
            supervisor->asked_to_end |= number == SIGTERM || number == SIGINT;
            children_signal(&supervisor->children, number);
        } else if (ends_us(number)) {
            *status = 128 + number;
            return false;
        }
    }
    if (number == EXEC_GUARD_GONE) {
        end_all(supervisor);
    }
    struct signalfd_siginfo info; /* that one has ended is looked for in any case */
    while (read(supervisor->ended, &info, sizeof info) == (ssize_t)sizeof info) {
    }
    return true;
}

static bool prepare(struct supervisor *supervisor) {
    sigset_t ended;
    if (!exec_guard_start(&supervisor->guard, &supervisor->mask)) {
        return false;
    }
    (void)sigemptyset(&ended);
    (void)sigaddset(&ended, SIGCHLD);
    supervisor->ended = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    return supervisor->ended >= 0;
}

static int supervise(struct supervisor *supervisor) {
    int status = EXIT_GAVEL;
    /* Signals first: what SIGCHLD tells of is then looked for before the next sleep. */
    while (take_signals(supervisor, &status) && exec_connect(supervisor, &status) &&
           exec_listen(supervisor, &status) && look_after_command(supervisor, &status) &&
           start_command(supervisor, &status)) {
        exec_beat(supervisor);
        tell_guard(supervisor, supervisor->children.group != 0);
        struct pollfd wanted[] = {
            {.fd = supervisor->ended, .events = POLLIN},
            {.fd = supervisor->guard.channel, .events = POLLIN},
            {.fd = supervisor->connected ? supervisor->client.fd : -1, .events = POLLIN}};
        (void)poll(wanted, 3, wait_ms(supervisor));
    }
    return status;
}

static const char help[] =
    "Attaches to the sidecar and runs CMD only while this replica leads, with the fencing token "
    "in\n"
    "GAVEL_TOKEN. When leadership is lost CMD is asked to end (SIGTERM) and killed, with all that\n"
    "came of it, before another replica may lead; then it is run again at the next election, or "
    "with\n"
    "--once this ends. SIGTERM comes max(1 s, ttl/10) before the lease's deadline (ttl/5 where "
    "the\n"
    "ttl is below 5 s), SIGKILL 50 ms before it. Signals are passed on.\n"
    "This is two processes: if one is killed the other one kills CMD and what came of it. Nothing\n"
    "can where both are killed, or stopped, at once (then CMD alone is killed, or none).\n"
    "Exit: CMD's own, 124 leadership was lost and CMD stopped, 125 gavel itself, 126 CMD cannot "
    "be\n"
    "run, 127 CMD is not there, 64 wrong command line.\n"
    "--timeout: how long to wait for a sidecar at the start.";

int cli_exec(int argc, char **argv) {
    struct arguments arguments = {
        .command = "exec",
        .synopsis = "[--once] [NAME] -- CMD...",
        .help = help,
        .timeout_ns = 30 * NS_PER_S,
        .takes_once = true,
        .takes_command = true,
    };
    int status;
    if (!arguments_parse(&arguments, argc, argv, &status)) {
        return status;
    }
    struct supervisor supervisor = {.arguments = &arguments,
                                    .command = arguments.rest,
                                    .client = {.fd = -1},
                                    .give_up_ns = client_now_ns() + arguments.timeout_ns,
                                    .rest_ns = NEVER_NS};
    if (!prepare(&supervisor)) {
        exec_complain("cannot look after a command", strerror(errno));
        return EXIT_GAVEL;
    }
    status = supervise(&supervisor);
    _exit(status); /* what is done at the end of the program is done by the guard, once */
}
