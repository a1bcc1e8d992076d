#include "cli/cli.h"

#include <stddef.h>

static const struct cli_command own_commands[] = {
    {"run", "--store URL --election NAME", "runs the sidecar", cli_run},
    {"config", "[OPTIONS]", "checks and shows what run would use", cli_config},
    {"key", "[--namespace NAME] NAME...", "shows the PostgreSQL keys of elections", cli_key},
    {NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv) {
    return cli_main("gavel", GAVEL_LIBRARIES, own_commands, argc, argv);
}
