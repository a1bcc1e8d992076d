#include "config/config.h"

#include "base/dump.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_usage(void) {
    (void)printf("usage: gavel config [OPTIONS]\n       gavel config --table\n\n"
                 "Checks the options and the environment that `gavel run` would use, and shows "
                 "every value\nand where it came from; --table prints the options as Markdown. "
                 "Exit: 0 good, 64 wrong\ncommand line, 78 wrong configuration.\n\n");
    config_print_help(stdout);
}

static void print(const struct config *config, const struct config_report *report) {
    config_print(config, stdout);
    for (size_t i = 0; i < report->warnings.count; i++) {
        (void)fprintf(stderr, "gavel config: warning: %s\n", report->warnings.lines[i]);
    }
    if (dump_problem() != NULL) {
        (void)fprintf(stderr, "gavel config: warning: coredump_filter: %s\n", dump_problem());
    }
}

int cli_config(int argc, char **argv) {
    if (argc == 1 && strcmp(argv[0], "--table") == 0) {
        config_print_table(stdout);
        return 0;
    }
    struct config config;
    struct config_report report;
    int status = 0;
    switch (config_load(&config, argc, argv, environ, &report)) {
    case CONFIG_GOOD:
        print(&config, &report);
        break;
    case CONFIG_HELP:
        print_usage();
        break;
    case CONFIG_BAD:
        status = config_report_print(&report, "gavel config", stderr);
        break;
    }
    config_report_finish(&report);
    config_finish(&config);
    return status;
}
