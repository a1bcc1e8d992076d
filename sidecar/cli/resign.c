#include "cli/ask.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

int cli_resign(int argc, char **argv) {
    struct arguments arguments = {
        .command = "resign",
        .synopsis = "[NAME]",
        .help = "Gives leadership of the election up and returns when the lock is given back; the "
                "sidecar\nstands again after a while. Exit: 0 done, 2 no answer, 64 wrong command "
                "line.",
        .timeout_ns = INT64_C(60000000000),
    };
    int status;
    char line[CLIENT_LINE_MOST + 1];
    if (!arguments_parse(&arguments, argc, argv, &status) ||
        !ask_line(&arguments, "resign", line, &status)) {
        return status;
    }
    if (strcmp(line, "ok") != 0) {
        return ask_failed(&arguments, client_result_text(CLIENT_JUNK));
    }
    (void)puts("ok");
    return 0;
}
