#include "cli/ask.h"
#include "cli/cli.h"

int cli_check(int argc, char **argv) {
    struct arguments arguments = {
        .command = "check",
        .synopsis = "[NAME]",
        .help = "Says whether this replica leads right now: \"leader TOKEN VALID_MS\", where "
                "VALID_MS is how\nlong the answer may be relied on from now, or \"follower "
                "HOLDER\" (\"-\": nobody is known).\nExit: 0 leader, 1 any other state, 2 no "
                "answer, 64 wrong command line.",
        .timeout_ns = INT64_C(2000000000),
    };
    int status;
    if (!arguments_parse(&arguments, argc, argv, &status)) {
        return status;
    }
    struct reply reply;
    int64_t left_ns;
    int64_t deadline_ns = client_now_ns() + arguments.timeout_ns;
    enum client_result result = ask_check(&arguments, deadline_ns, &reply, &left_ns);
    if (result != CLIENT_OK) {
        return ask_failed(&arguments, client_result_text(result));
    }
    if (reply.kind == REPLY_ERROR) {
        return ask_refused(&arguments, &reply);
    }
    return ask_print(&reply, left_ns);
}
