#include "base/dump.h"
#include "cli/cli.h"

#include <stddef.h>
#include <string.h>

static const struct cli_command own_commands[] = {
    {"run", "--store URL --election NAME", "runs the sidecar", cli_run},
    {"config", "[OPTIONS]", "checks and shows what run would use", cli_config},
    {"key", "[--namespace NAME] NAME...", "shows the PostgreSQL keys of elections", cli_key},
    {NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv) {
    /* The command that `exec` runs would inherit it, and its dumps are its own affair. */
    if (argc < 2 || strcmp(argv[1], "exec") != 0) {
        dump_keep_memory_out();
    }
    return cli_main("gavel", GAVEL_LIBRARIES, own_commands, argc, argv);
}
