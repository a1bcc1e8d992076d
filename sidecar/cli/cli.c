#include "cli/cli.h"

#include "base/build.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *program_name = "gavel";

const struct cli_command cli_client_commands[] = {
    {"check", "[NAME]", "says whether this replica leads: exit 0, or 1", cli_check},
    {"wait", "[--for leader|ready] [NAME]", "waits until this replica leads, or answers", cli_wait},
    {"status", "[--json] [NAME]", "shows all there is to know of an election", cli_status},
    {"resign", "[NAME]", "gives leadership up, and stands again later", cli_resign},
    {"exec", "[--once] [NAME] -- CMD...", "runs CMD only while this replica leads", cli_exec},
    {NULL, NULL, NULL, NULL},
};

const char *cli_program(void) {
    return program_name;
}

static void print_commands(FILE *out, const struct cli_command *commands) {
    for (; commands != NULL && commands->name != NULL; commands++) {
        char usage[64];
        (void)snprintf(usage, sizeof usage, "%s %s", commands->name, commands->synopsis);
        (void)fprintf(out, "  %-32s %s\n", usage, commands->help);
    }
}

static void print_help(FILE *out, const struct cli_command *own) {
    (void)fprintf(out, "usage: %s COMMAND [OPTIONS]\n\n", program_name);
    print_commands(out, own);
    print_commands(out, cli_client_commands);
    (void)fprintf(out, "\n%s COMMAND --help tells more, %s --version what this is.\n", program_name,
                  program_name);
}

static const struct cli_command *find_in(const struct cli_command *commands, const char *name) {
    for (; commands != NULL && commands->name != NULL; commands++) {
        if (strcmp(commands->name, name) == 0) {
            return commands;
        }
    }
    return NULL;
}

static const struct cli_command *find(const struct cli_command *own, const char *name) {
    const struct cli_command *found = find_in(own, name);
    return found != NULL ? found : find_in(cli_client_commands, name);
}

static int unknown_command(const char *name, const struct cli_command *own) {
    char quoted[80];
    if (name[0] == '-') {
        (void)fprintf(stderr, "%s: the command comes before its options, as in: %s %s ...\n",
                      program_name, program_name, own != NULL ? own->name : "check");
    } else {
        (void)fprintf(stderr, "%s: unknown command %s\n", program_name,
                      text_quote(name, quoted, sizeof quoted));
    }
    print_help(stderr, own);
    return EXIT_USAGE;
}

static bool is_any_of(const char *text, const char *a, const char *b) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

int cli_main(const char *program, const char *libraries, const struct cli_command *own, int argc,
             char **argv) {
    static char help_flag[] = "--help";
    program_name = program;
    if (argc < 2) {
        print_help(stderr, own);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    bool help = strcmp(name, "help") == 0;
    if (is_any_of(name, "--help", "-h") || (help && argc == 2)) {
        print_help(stdout, own);
        return 0;
    }
    if (is_any_of(name, "--version", "version")) {
        (void)printf("%s %s (%s)\nbuilt with %s\n%s%s%s", program, build_version(),
                     build_revision(), build_details(), libraries[0] != '\0' ? "against " : "",
                     libraries, libraries[0] != '\0' ? "\n" : "");
        return 0;
    }
    /* As the old leader-elector was started: with flags alone. */
    if (own != NULL && strncmp(name, "--", 2) == 0) {
        return own->run(argc - 1, argv + 1);
    }
    const struct cli_command *command = find(own, help ? argv[2] : name);
    if (command == NULL) {
        return unknown_command(help ? argv[2] : name, own);
    }
    char *help_arguments[] = {help_flag, NULL};
    return help ? command->run(1, help_arguments) : command->run(argc - 2, argv + 2);
}
