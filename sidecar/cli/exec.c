#include "cli/ask.h"
#include "cli/children.h"
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/*
 * Runs a command only while this replica leads. The sidecar tells the lease; that it ends in time
 * is our own doing, by our own clock: a sidecar that is dead or stopped has nothing to say.
 */

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define KILL_BEFORE_NS (50 * NS_PER_MS)
#define RECONNECT_NS (100 * NS_PER_MS)
#define REST_NS NS_PER_S /* for what the command leaves running when it ends by itself */
#define EXIT_LOST 124
#define EXIT_GAVEL 125
#define NEVER_NS INT64_MAX

struct supervisor {
    const struct arguments *arguments;
    char *const *command;
    sigset_t mask; /* the command's */
    int signals;   /* signalfd */

    struct client client;
    bool connected;
    bool answered;              /* "ok" has come: attached */
    int64_t reconnect_ns;       /* when to try again */
    int64_t give_up_ns;         /* without ever having been attached */
    enum client_result failure; /* why there is no sidecar yet */
    int64_t beat_every_ns;      /* 0: none is wanted */
    int64_t beat_ns;

    struct children children;
    uint64_t token;      /* of the lease; 0: none */
    int64_t deadline_ns; /* BOOTTIME: nothing may run any more */
    int64_t real_ns;     /* the same on REALTIME, which may only shorten it */
    int64_t grace_ns;    /* the command is asked to end so long before */
    int64_t rest_ns;     /* the command has ended: what is left is killed then */
    bool stopping;       /* it was asked to end */
    bool lost;           /* ... because leadership is over, or was about to be */
    uint64_t revoked;    /* owed: "done" with this token; 0: nothing */
    bool asked_to_end;   /* by a signal that was passed on */
};

static int64_t real_now_ns(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* What is left by both clocks. */
static int64_t left_ns(const struct supervisor *supervisor) {
    if (supervisor->token == 0) {
        return 0;
    }
    return least(supervisor->deadline_ns - client_now_ns(), supervisor->real_ns - real_now_ns());
}

static void complain(const char *what, const char *why) {
    (void)fprintf(stderr, "%s exec: %s%s%s\n", cli_program(), what, why[0] != '\0' ? ": " : "",
                  why);
}

static void say(struct supervisor *supervisor, const char *verb, const char *what) {
    if (supervisor->connected) {
        (void)client_send(&supervisor->client, verb, what, client_now_ns() + 20 * NS_PER_MS);
    }
}

static void ask_to_end(struct supervisor *supervisor) {
    supervisor->lost = true;
    if (supervisor->children.group != 0 && !supervisor->stopping) {
        supervisor->stopping = true;
        children_signal(&supervisor->children, SIGTERM);
        children_signal(&supervisor->children, SIGCONT);
    }
}

static void disconnect(struct supervisor *supervisor) {
    if (supervisor->connected) {
        client_close(&supervisor->client);
    }
    supervisor->connected = supervisor->answered = false;
    supervisor->reconnect_ns = client_now_ns() + RECONNECT_NS;
    supervisor->beat_every_ns = 0;
    supervisor->revoked = 0;
    ask_to_end(supervisor); /* the end of the connection means: not leader */
}

/* --- what the sidecar says ------------------------------------------------------------------- */

static void hear_lease(struct supervisor *supervisor, uint64_t token, int64_t valid_ms,
                       int64_t deadline_ns, int64_t ttl_ms) {
    bool running = supervisor->children.group != 0;
    if (supervisor->revoked == token || (running && token != supervisor->token)) {
        return;
    }
    int64_t grace_ns = ttl_ms * NS_PER_MS / 10;
    grace_ns = grace_ns > NS_PER_S ? grace_ns : NS_PER_S;
    supervisor->grace_ns = least(grace_ns, ttl_ms * NS_PER_MS / 5);
    supervisor->token = token;
    supervisor->deadline_ns = least(deadline_ns, client_now_ns() + valid_ms * NS_PER_MS);
    supervisor->real_ns = real_now_ns() + valid_ms * NS_PER_MS;
}

static void hear_revoke(struct supervisor *supervisor, uint64_t token, int64_t ms) {
    supervisor->revoked = token;
    if (token == supervisor->token) {
        int64_t by_ns = client_now_ns() + ms * NS_PER_MS;
        supervisor->deadline_ns = least(supervisor->deadline_ns, by_ns);
        ask_to_end(supervisor);
    }
}

/* False: not one of the lines that are known, which is no reason to end. */
static void hear(struct supervisor *supervisor, const char *line) {
    uint64_t token;
    int64_t first, second, third;
    if (sscanf(line, "lease %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &token, &first, &second,
               &third) == 4) {
        hear_lease(supervisor, token, first, second, third);
    } else if (sscanf(line, "revoke %" SCNu64 " %" SCNd64, &token, &first) == 2) {
        hear_revoke(supervisor, token, first);
    } else if (sscanf(line, "beat %" SCNd64, &first) == 1 && first > 0) {
        supervisor->beat_every_ns = first * NS_PER_MS / 4;
        supervisor->beat_ns = client_now_ns();
    }
}

/* The answer to "attach". False: it will not become better, `*status` is the end. */
static bool hear_answer(struct supervisor *supervisor, const char *line, int *status) {
    struct reply reply;
    if (strcmp(line, "ok") == 0) {
        supervisor->answered = true;
        supervisor->give_up_ns = NEVER_NS;
        say(supervisor, "lease", "");
        return true;
    }
    if (reply_is_error(line, &reply) &&
        (strcmp(reply.code, "busy") == 0 || strcmp(reply.code, "shutting-down") == 0 ||
         strcmp(reply.code, "too-many") == 0)) {
        disconnect(supervisor); /* until there is room */
        return true;
    }
    bool error = reply_is_error(line, &reply);
    complain(supervisor->arguments->socket, error ? reply.text : "this is no sidecar's answer");
    *status = EXIT_GAVEL;
    return false;
}

static bool listen_to_sidecar(struct supervisor *supervisor, int *status) {
    const char *line;
    while (supervisor->connected) {
        enum client_result result = client_read(&supervisor->client, 0, &line);
        if (result == CLIENT_TIMEOUT) {
            break; /* nothing more for now */
        }
        if (result != CLIENT_OK) {
            disconnect(supervisor);
        } else if (supervisor->answered) {
            hear(supervisor, line);
        } else if (!hear_answer(supervisor, line, status)) {
            return false;
        }
    }
    return true;
}

/* --- what is due ----------------------------------------------------------------------------- */

static bool connect_again(struct supervisor *supervisor, int *status) {
    int64_t now_ns = client_now_ns();
    if (now_ns >= supervisor->give_up_ns) {
        complain(supervisor->arguments->socket, client_result_text(supervisor->failure));
        *status = EXIT_GAVEL;
        return false;
    }
    if (supervisor->connected || supervisor->children.group != 0 ||
        now_ns < supervisor->reconnect_ns) {
        return true;
    }
    supervisor->reconnect_ns = now_ns + RECONNECT_NS;
    supervisor->failure =
        client_connect(&supervisor->client, supervisor->arguments->socket, now_ns + RECONNECT_NS);
    if (supervisor->failure == CLIENT_OK) {
        supervisor->connected = true;
        supervisor->failure = CLIENT_TIMEOUT; /* unless it answers */
        supervisor->token = 0; /* what was told on another connection ended with it */
        say(supervisor, "attach", supervisor->arguments->name);
    }
    return true;
}

/* The command has ended, or was ended; nothing of it is left. False: so have we. */
static bool after_command(struct supervisor *supervisor, int *status) {
    bool own_end = !supervisor->lost;
    supervisor->stopping = supervisor->lost = false;
    supervisor->rest_ns = NEVER_NS;
    if (own_end || supervisor->asked_to_end || supervisor->arguments->once) {
        if (own_end) {
            say(supervisor, "resign", "");
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
    if (children_reap(children)) {
        return after_command(supervisor, status);
    }
    int64_t now_ns = client_now_ns();
    int64_t left = left_ns(supervisor);
    if (left <= KILL_BEFORE_NS || now_ns >= supervisor->rest_ns) {
        supervisor->lost = supervisor->lost || children->main != 0;
        children_kill(children);
        return !children_reap(children) || after_command(supervisor, status);
    }
    if (children->main == 0 && supervisor->rest_ns == NEVER_NS) {
        supervisor->rest_ns = now_ns + REST_NS;
        children_signal(children, SIGTERM);
    } else if (left <= supervisor->grace_ns && children->main != 0) {
        ask_to_end(supervisor);
    }
    return true;
}

static bool start_command(struct supervisor *supervisor, int *status) {
    char number[24];
    bool idle = supervisor->children.group == 0;
    if (idle && supervisor->revoked != 0) {
        (void)snprintf(number, sizeof number, "%" PRIu64, supervisor->revoked);
        say(supervisor, "done", number);
        supervisor->revoked = 0;
        supervisor->token = 0;
    }
    if (!idle || !supervisor->answered ||
        left_ns(supervisor) <= supervisor->grace_ns + KILL_BEFORE_NS) {
        return true;
    }
    supervisor->lost = supervisor->stopping = false;
    if (!children_start(&supervisor->children, supervisor->command, supervisor->token,
                        supervisor->client.fd, &supervisor->mask)) {
        complain("cannot start a process", strerror(errno));
        *status = EXIT_GAVEL;
        return false;
    }
    return true;
}

static void beat(struct supervisor *supervisor) {
    if (supervisor->beat_every_ns > 0 && client_now_ns() >= supervisor->beat_ns) {
        supervisor->beat_ns = client_now_ns() + supervisor->beat_every_ns;
        say(supervisor, "beat", "");
    }
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
        int64_t left = left_ns(supervisor);
        bool asks = !supervisor->stopping && supervisor->children.main != 0;
        wait_ns = least(wait_ns, left - (asks ? supervisor->grace_ns : KILL_BEFORE_NS));
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

/* Forwarded to the command; without one, those that end a program end this one. */
static bool take_signals(struct supervisor *supervisor, int *status) {
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD) {
            continue;
        }
        if (supervisor->children.group != 0) {
            /* Not SIGHUP: to many programs it says "read your settings again". */
            supervisor->asked_to_end |= number == SIGTERM || number == SIGINT;
            children_signal(&supervisor->children, number);
        } else if (ends_us(number)) {
            *status = 128 + number;
            return false;
        }
    }
    return true;
}

static bool prepare(struct supervisor *supervisor) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};
    sigset_t taken;
    (void)sigemptyset(&taken);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)sigaddset(&taken, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &taken, &supervisor->mask) != 0 || !children_adopt()) {
        return false;
    }
    supervisor->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return supervisor->signals >= 0;
}

static int supervise(struct supervisor *supervisor) {
    int status = EXIT_GAVEL;
    /* Signals first: what SIGCHLD tells of is then looked for before the next sleep. */
    while (take_signals(supervisor, &status) && connect_again(supervisor, &status) &&
           listen_to_sidecar(supervisor, &status) && look_after_command(supervisor, &status) &&
           start_command(supervisor, &status)) {
        beat(supervisor);
        struct pollfd wanted[] = {
            {.fd = supervisor->signals, .events = POLLIN},
            {.fd = supervisor->connected ? supervisor->client.fd : -1, .events = POLLIN}};
        (void)poll(wanted, 2, wait_ms(supervisor));
    }
    return status;
}

int cli_exec(int argc, char **argv) {
    struct arguments arguments = {
        .command = "exec",
        .synopsis = "[--once] [NAME] -- CMD...",
        .help = "Attaches to the sidecar and runs CMD only while this replica leads, with the "
                "fencing token in\nGAVEL_TOKEN. When leadership is lost CMD is asked to end "
                "(SIGTERM) and killed, with all that\ncame of it, before another replica may "
                "lead; then it is run again at the next election, or with\n--once this ends. "
                "Signals are passed on. Exit: CMD's own, 124 leadership was lost and CMD\nstopped, "
                "125 gavel itself, 126 CMD cannot be run, 127 CMD is not there, 64 wrong command "
                "line.\n--timeout: how long to wait for a sidecar at the start.",
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
                                    .give_up_ns = client_now_ns() + arguments.timeout_ns,
                                    .rest_ns = NEVER_NS};
    if (!prepare(&supervisor)) {
        complain("cannot look after a command", strerror(errno));
        return EXIT_GAVEL;
    }
    return supervise(&supervisor);
}
