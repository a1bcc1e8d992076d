#ifndef GAVEL_CONFIG_CONFIG_H
#define GAVEL_CONFIG_CONFIG_H

#include "base/error.h"
#include "election/reply.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ELECTION_NAME_MAX 100
#define ELECTIONS_MAX 1000
#define SOCKET_PATH_MAX 107 /* bytes in sockaddr_un, without its end */

/* Where a listener binds; off: it does not. */
struct listen_address {
    bool off;
    char host[256]; /* "" : all addresses of both families; "localhost": both loopbacks */
    uint16_t port;  /* 0: a free one, logged */
};

struct config_setting;

/*
 * Everything that `run` needs, checked: no value here is out of range or contradicts another.
 * Owned by config_finish(). Times in nanoseconds.
 */
struct config {
    char *store_url;
    char *namespace_;
    char *identity;
    char **elections;
    size_t election_count;

    int64_t ttl_ns;
    int64_t margin_ns;
    int64_t wait_ns;
    int64_t valid_for_ns;
    int64_t drain_ns;
    bool drain_none;
    bool efficiency;
    bool step_down;
    uint64_t token_floor;
    unsigned redis_wait_replicas;

    bool require_app;
    int64_t app_timeout_ns; /* 0: off */
    char *app_check;        /* a URL; NULL: off */

    struct listen_address http;
    struct listen_address health;
    bool socket_off;
    char *socket_path;
    unsigned socket_mode;
    bool page_dir_off;
    char *page_dir;

    char *store_user;     /* NULL: none */
    char *store_password; /* NULL: none */
    char *store_user_file;
    char *store_password_file; /* read again on SIGHUP, and when the store refuses it */
    char *tls_ca;              /* NULL: none; these are read again on SIGHUP */
    char *tls_cert;
    char *tls_key;

    struct store_postgres postgres; /* its texts are those below */
    char *pg_schema;
    char *pg_sequence; /* NULL: none */

    bool log_json;
    int log_level; /* enum log_level */

    struct config_setting *settings; /* where each value came from, by enum option_id */
};

/* Lines for people, in the order found; secrets in them are masked. Owned by
 * config_report_finish(). */
struct config_list {
    char **lines;
    size_t count;
};

struct config_report {
    struct config_list errors;   /* each names key, value and what would be right */
    struct config_list warnings; /* worth a line in the log, not in the way */
    bool usage;                  /* an error is about the command line itself: exit 64, not 78 */
};

enum config_result {
    CONFIG_GOOD,
    CONFIG_HELP, /* --help was asked for; nothing was checked */
    CONFIG_BAD,  /* all that is wrong is in report->errors */
};

/*
 * Reads flags (`argv`: what follows the subcommand), then the environment ("NAME=VALUE", ended by
 * NULL), then defaults, and checks every value. Nothing outside is changed. Always to be followed
 * by config_finish() and config_report_finish(); only CONFIG_GOOD makes `config` fit for use.
 */
enum config_result config_load(struct config *config, int argc, char *const *argv,
                               char *const *environment, struct config_report *report);
void config_finish(struct config *config);
void config_report_finish(struct config_report *report);

/* Prints the errors, each on its line after "program: ", the warnings after them. Returns the exit
 * status that they call for: 64 or 78. */
int config_report_print(const struct config_report *report, const char *program, FILE *out);

/* Makes the runtime directory where it is missing and the socket or the pages are in it by default;
 * a folder that was given has to be there. */
bool config_make_runtime_folder(const struct config *config, struct error *error);

/* Reads the files of --store-user-file and --store-password-file again. What can be read replaces
 * the old string, which is freed: point to the new ones afterwards in any case. `changed` says
 * whether one is another now. False: one could not be read, its old value stays, `error` says why.
 */
bool config_reload_secrets(struct config *config, bool *changed, struct error *error);

/* One line an option: name, value, where it came from. Secrets are hidden. */
void config_print(const struct config *config, FILE *out);
/* The options for --help, and as a table for the documentation. */
void config_print_help(FILE *out);
void config_print_table(FILE *out);

#endif
