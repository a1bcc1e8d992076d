#include "app.h"
#include "base/dump.h"
#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Whatever is opened next must not take the number of a missing stderr, where log lines go. */
static void open_missing_streams(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void print_usage(void) {
    (void)printf("usage: gavel run --store URL --election NAME [OPTIONS]\n\n"
                 "Runs the sidecar until SIGTERM. Exit: 0 drained, 1 could not start or go on, 64 "
                 "wrong\ncommand line, 78 wrong configuration.\n\n");
    config_print_help(stdout);
}

static int start(struct config *config, const struct config_report *report) {
    log_setup(config->log_json, (enum log_level)config->log_level);
    for (size_t i = 0; i < report->warnings.count; i++) {
        log_event(LOG_WARN, "configuration", LOG_TEXT("text", report->warnings.lines[i]));
    }
    if (dump_problem() != NULL) {
        log_event(LOG_WARN, "no-core-dumps", LOG_TEXT("filter", dump_problem()));
    }
    struct error error;
    if (!config_make_runtime_folder(config, &error)) {
        log_event(LOG_ERROR, "configuration", LOG_TEXT("text", error.text));
        return 1;
    }
    return app_run(config);
}

int cli_run(int argc, char **argv) {
    open_missing_streams();
    (void)signal(SIGPIPE, SIG_IGN);
    struct config config;
    struct config_report report;
    int status = 0;
    switch (config_load(&config, argc, argv, environ, &report)) {
    case CONFIG_GOOD:
        status = start(&config, &report);
        break;
    case CONFIG_HELP:
        print_usage();
        break;
    case CONFIG_BAD:
        status = config_report_print(&report, "gavel run", stderr);
        break;
    }
    config_report_finish(&report);
    config_finish(&config);
    return status;
}
