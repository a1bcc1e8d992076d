#include "cli/ask.h"
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>

#define RETRY_NS INT64_C(100000000)
#define ATTEMPT_NS                                                                                 \
    INT64_C(2000000000) /* a sidecar that hangs may be replaced by one that works                  \
                         */

struct waiting {
    const struct arguments *arguments;
    int64_t deadline_ns;
    bool answered; /* a sidecar was there at all */
    enum client_result last;
};

enum step { STEP_AGAIN, STEP_REACHED, STEP_REFUSED };

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t attempt_deadline_ns(const struct waiting *waiting) {
    return least(waiting->deadline_ns, client_now_ns() + ATTEMPT_NS);
}

/* "ready" is a sidecar that answers. A name that it does not know will not become known. */
static enum step try_ready(struct waiting *waiting, int *status) {
    struct reply reply;
    int64_t left_ns;
    waiting->last = ask_check(waiting->arguments, attempt_deadline_ns(waiting), &reply, &left_ns);
    if (waiting->last != CLIENT_OK) {
        return STEP_AGAIN;
    }
    waiting->answered = true;
    if (reply.kind != REPLY_ERROR) {
        return STEP_REACHED;
    }
    if (!reply_blames_name(&reply)) {
        return STEP_AGAIN;
    }
    if (waiting->arguments->name[0] == '\0') {
        return STEP_REACHED; /* "which one of several?" is an answer too */
    }
    *status = ask_refused(waiting->arguments, &reply);
    return STEP_REFUSED;
}

/* A pushed line is good by its deadline only, and clocks of a container may be set off: what counts
 * is the answer to a question of our own. */
static enum step confirm_leader(struct waiting *waiting) {
    struct reply reply;
    int64_t left_ns;
    waiting->last = ask_check(waiting->arguments, attempt_deadline_ns(waiting), &reply, &left_ns);
    if (waiting->last == CLIENT_OK && reply.kind == REPLY_LEADER) {
        (void)ask_print(&reply, left_ns);
        return STEP_REACHED;
    }
    return STEP_AGAIN;
}

static enum step follow(struct waiting *waiting, struct client *client, int *status) {
    const char *line;
    enum step step = STEP_AGAIN;
    int64_t deadline_ns = attempt_deadline_ns(waiting); /* of the first line, which comes at once */
    waiting->last = client_send(client, "watch", waiting->arguments->name, deadline_ns);
    while (waiting->last == CLIENT_OK && step == STEP_AGAIN) {
        waiting->last = client_read(client, deadline_ns, &line);
        if (waiting->last != CLIENT_OK) {
            break;
        }
        deadline_ns = waiting->deadline_ns;
        struct reply reply = reply_parse(line);
        if (reply.kind == REPLY_BAD) {
            waiting->last = CLIENT_JUNK;
            break;
        }
        waiting->answered = true;
        if (reply.kind == REPLY_LEADER) {
            step = confirm_leader(waiting);
        } else if (reply.kind == REPLY_ERROR) {
            if (reply_blames_name(&reply)) {
                *status = ask_refused(waiting->arguments, &reply);
                return STEP_REFUSED;
            }
            break;
        }
    }
    return step;
}

static enum step try_leader(struct waiting *waiting, int *status) {
    struct client client;
    waiting->last =
        client_connect(&client, waiting->arguments->socket, attempt_deadline_ns(waiting));
    if (waiting->last != CLIENT_OK) {
        return STEP_AGAIN;
    }
    enum step step = follow(waiting, &client, status);
    client_close(&client);
    return step;
}

static int wait_until(struct waiting *waiting) {
    int status = 0;
    const struct arguments *arguments = waiting->arguments;
    for (;;) {
        enum step step =
            arguments->ready ? try_ready(waiting, &status) : try_leader(waiting, &status);
        if (step != STEP_AGAIN) {
            return status;
        }
        int64_t left_ns = waiting->deadline_ns - client_now_ns();
        if (left_ns <= 0) {
            break;
        }
        (void)poll(NULL, 0, (int)(least(left_ns, RETRY_NS) / 1000000) + 1);
    }
    if (!waiting->answered) {
        return ask_failed(arguments, client_result_text(waiting->last));
    }
    (void)fprintf(stderr, "%s wait: timed out: %s\n", cli_program(),
                  arguments->ready ? "the sidecar is not ready" : "this replica does not lead");
    return 1;
}

int cli_wait(int argc, char **argv) {
    struct arguments arguments = {
        .command = "wait",
        .synopsis = "[--for leader|ready] [NAME]",
        .help = "Waits until this replica leads, and prints what check does; with --for ready, "
                "until a sidecar\nanswers at all, whatever its role. Exit: 0 reached, 1 timed out, "
                "2 no sidecar answered,\n64 wrong command line.",
        .timeout_ns = INT64_C(30000000000),
        .takes_for = true,
    };
    int status;
    if (!arguments_parse(&arguments, argc, argv, &status)) {
        return status;
    }
    struct waiting waiting = {.arguments = &arguments,
                              .deadline_ns = client_now_ns() + arguments.timeout_ns};
    return wait_until(&waiting);
}
