#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/flat.h"

#include <stdio.h>
#include <string.h>

#define VALUE_BYTES 1024

/* What the sidecar says, in the order that people look for it. */
static const struct {
    const char *label, *member;
} rows[] = {
    {"election", "election"},
    {"namespace", "namespace"},
    {"identity", "identity"},
    {"state", "state"},
    {"since", "since"},
    {"token", "token"},
    {"valid for ms", "valid_for_ms"},
    {"holder", "holder"},
    {"holder since", "holder_since"},
    {"reason", "reason"},
    {"detail", "detail"},
    {"warnings", "warnings"},
    {"index", "index"},
    {"store", "store"},
    {"lock space", "lock_space"},
    {"mode", "mode"},
    {"failover", "failover_safety"},
};

static void print_for_people(const char *json) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char value[VALUE_BYTES];
        if (!flat_find(json, rows[i].member, value, sizeof value)) {
            continue;
        }
        bool nothing = value[0] == '\0' || strcmp(value, "null") == 0;
        (void)printf("%-14s%s\n", rows[i].label, nothing ? "-" : value);
    }
}

int cli_status(int argc, char **argv) {
    struct arguments arguments = {
        .command = "status",
        .synopsis = "[--json] [NAME]",
        .help = "Shows all that the sidecar says of an election; with --json, its JSON on one "
                "line. Where\nthere are several elections one has to be named. Exit: 0 shown, 2 no "
                "answer, 64 wrong\ncommand line.",
        .timeout_ns = INT64_C(2000000000),
        .takes_json = true,
    };
    int status;
    char line[CLIENT_LINE_MOST + 1];
    if (!arguments_parse(&arguments, argc, argv, &status) ||
        !ask_line(&arguments, "status", line, &status)) {
        return status;
    }
    char state[16];
    if (!flat_is_object(line) || !flat_find(line, "state", state, sizeof state)) {
        return ask_failed(&arguments, client_result_text(CLIENT_JUNK));
    }
    if (arguments.json) {
        (void)puts(line);
    } else {
        print_for_people(line);
    }
    return 0;
}
