#ifndef GAVEL_CLI_CLI_H
#define GAVEL_CLI_CLI_H

/* The subcommands, one file each. argv: what follows the subcommand. They return the exit status.
 */
#define EXIT_NO_ANSWER 2
#define EXIT_USAGE 64 /* EX_USAGE of sysexits.h */

int cli_run(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_key(int argc, char **argv);

/* These need libc only and talk to the sidecar over its socket. */
int cli_check(int argc, char **argv);
int cli_wait(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_resign(int argc, char **argv);
int cli_exec(int argc, char **argv);

/* A program: its name and what it can do; one ends with a NULL name. */
struct cli_command {
    const char *name;
    const char *synopsis; /* what follows the name */
    const char *help;     /* one line */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_client_commands[];

/* Finds the subcommand in argv[1], runs it; also --version, --help, help [COMMAND]. The tables are
 * searched in turn, `own` may be NULL. `libraries` is what --version says of them, or empty. */
int cli_main(const char *program, const char *libraries, const struct cli_command *own, int argc,
             char **argv);

/* "gavelctl", for messages. */
const char *cli_program(void);

#endif
