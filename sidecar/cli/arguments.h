#ifndef GAVEL_CLI_ARGUMENTS_H
#define GAVEL_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The command line of those that talk to the sidecar: [OPTIONS] [NAME]. All that is wrong with it
 * is printed to stderr at once. libc only.
 */
#define SOCKET_PATH_BYTES 108 /* with its end */

struct arguments {
    /* What the command takes and its defaults; set before arguments_parse(). */
    const char *command;  /* "check" */
    const char *help;     /* printed for --help, after the line of usage */
    const char *synopsis; /* "[NAME]" */
    int64_t timeout_ns;   /* its default */
    bool takes_for;       /* --for leader|ready */
    bool takes_json;      /* --json */
    bool takes_once;      /* --once */
    bool takes_command;   /* -- CMD... */

    /* The result. */
    const char *name; /* "": the only election there is */
    char socket[SOCKET_PATH_BYTES];
    bool ready; /* --for ready */
    bool json;
    bool once;
    char **rest; /* the command, ended by NULL */
};

/* True: go on. False: end with *status (0 after --help, else 64). */
bool arguments_parse(struct arguments *arguments, int argc, char **argv, int *status);

#endif
