#ifndef GAVEL_CONFIG_OPTIONS_H
#define GAVEL_CONFIG_OPTIONS_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The one table of options: flags, environment variables, checks of single values, help text and
 * documentation all come from it. What options say about each other is in check.c.
 */
enum option_id {
    OPTION_STORE,
    OPTION_STORE_USER,
    OPTION_STORE_PASSWORD,
    OPTION_TLS_CA,
    OPTION_TLS_CERT,
    OPTION_TLS_KEY,
    OPTION_ELECTION,
    OPTION_NAMESPACE,
    OPTION_IDENTITY,
    OPTION_TTL,
    OPTION_MARGIN,
    OPTION_WAIT,
    OPTION_MODE,
    OPTION_ON_RENEW_FAILURE,
    OPTION_VALID_FOR,
    OPTION_DRAIN,
    OPTION_TOKEN_FLOOR,
    OPTION_REDIS_WAIT_REPLICAS,
    OPTION_REQUIRE_APP,
    OPTION_APP_TIMEOUT,
    OPTION_APP_CHECK,
    OPTION_HTTP,
    OPTION_HEALTH,
    OPTION_SOCKET,
    OPTION_SOCKET_MODE,
    OPTION_PAGE_DIR,
    OPTION_PG_LOCK,
    OPTION_PG_POOLER,
    OPTION_PG_KEY,
    OPTION_PG_SCHEMA,
    OPTION_PG_TOKEN,
    OPTION_PG_SYNCHRONOUS,
    OPTION_LOG_FORMAT,
    OPTION_LOG_LEVEL,
    OPTION_COUNT
};

struct option;

/* Reads one value, not empty, into its place in `config`. False: `error` says what is wrong and
 * what would be right, in words that go on after the value. */
typedef bool option_take(const struct option *option, const char *text, struct config *config,
                         struct error *error);
/* Prints the value in force. */
typedef void option_show(const struct option *option, const struct config *config, FILE *out);

struct option {
    const char *name;     /* without the dashes */
    const char *old_name; /* NULL: none */
    const char *value;    /* in help: "URL" */
    const char *standard; /* its default, as for people; NULL: none */
    const char *help;
    bool required;
    bool computed;   /* the default depends on other things: `standard` only describes it */
    bool repeatable; /* each value adds to those before */
    bool file_twin;  /* may also be read from a file */
    bool flag;       /* may stand without a value, which means true */
    bool secret;     /* never on the command line, never shown */
    option_take *take;
    option_show *show;
    size_t target;              /* offset in struct config */
    int64_t least, most;        /* of a time, in nanoseconds; of a count */
    const char *const *choices; /* ended by NULL; the index is the value */
};

extern const struct option options[OPTION_COUNT];

/* Where a value came from. */
struct config_setting {
    char *key;   /* "--ttl", "GAVEL_TTL"; NULL: the default */
    char *file;  /* the file that it was read from; NULL: none */
    char *shown; /* as given, fit for an error's text: quoted, secrets masked; NULL: the default */
    bool bad;    /* it was refused: nothing is to be concluded from it */
};

/* "GAVEL_STORE_USER" for "store-user". */
#define OPTION_VARIABLE_MAX 64
const char *option_variable(const char *name, char variable[OPTION_VARIABLE_MAX]);

#endif
