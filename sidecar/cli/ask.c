#include "cli/ask.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int ask_failed(const struct arguments *arguments, const char *why) {
    (void)fprintf(stderr, "%s %s: no answer from the sidecar at %s: %s\n", cli_program(),
                  arguments->command, arguments->socket, why);
    return EXIT_NO_ANSWER;
}

int ask_refused(const struct arguments *arguments, const struct reply *reply) {
    (void)fprintf(stderr, "%s %s: %s: %s\n", cli_program(), arguments->command, reply->code,
                  reply->text);
    return reply_blames_name(reply) ? EXIT_USAGE : EXIT_NO_ANSWER;
}

bool ask_line(const struct arguments *arguments, const char *verb, char *line, int *status) {
    int64_t deadline_ns = client_now_ns() + arguments->timeout_ns;
    enum client_result result =
        client_ask(arguments->socket, verb, arguments->name, deadline_ns, line);
    if (result != CLIENT_OK) {
        *status = ask_failed(arguments, client_result_text(result));
        return false;
    }
    struct reply reply;
    if (reply_is_error(line, &reply)) {
        *status = ask_refused(arguments, &reply);
        return false;
    }
    return true;
}

enum client_result ask_check(const struct arguments *arguments, int64_t deadline_ns,
                             struct reply *reply, int64_t *left_ns) {
    char line[CLIENT_LINE_MOST + 1];
    int64_t asked_ns = client_now_ns();
    *left_ns = 0;
    enum client_result result =
        client_ask(arguments->socket, "check", arguments->name, deadline_ns, line);
    if (result != CLIENT_OK) {
        return result;
    }
    *reply = reply_parse(line);
    if (reply->kind == REPLY_LEADER) {
        *left_ns = asked_ns + reply->valid_ns - client_now_ns();
        if (*left_ns <= 0) {
            reply->kind = REPLY_FOLLOWER;
            (void)strcpy(reply->holder, "-");
        }
    }
    return reply->kind == REPLY_BAD ? CLIENT_JUNK : CLIENT_OK;
}

int ask_print(const struct reply *reply, int64_t left_ns) {
    if (reply->kind == REPLY_LEADER) {
        (void)printf("leader %" PRIu64 " %" PRId64 "\n", reply->token, left_ns / 1000000);
        return 0;
    }
    (void)printf("follower %s\n", reply->holder);
    return 1;
}
