#include "config/values.h"

#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The values of the --pg-* options. */

#define IDENTIFIER_MAX 63                     /* bytes of a name in PostgreSQL */
#define SEQUENCE_MAX (2 * IDENTIFIER_MAX + 5) /* two of them, quoted, and the dot */

static const char sequence_prefix[] = "sequence:";

/* A whole decimal number, ended by `end`; NULL: it is none, or out of range. */
static const char *read_number(const char *text, int64_t least, int64_t most, int64_t *number) {
    char *end;
    errno = 0;
    if (*text != '-' && (*text < '0' || *text > '9')) {
        return NULL;
    }
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *number >= least && *number <= most ? end : NULL;
}

bool take_pg_key(const struct option *option, const char *text, struct config *config,
                 struct error *error) {
    struct store_pg_key key = {.form = STORE_PG_KEY_HASH};
    int64_t first;
    int64_t second;
    const char *end = NULL;
    (void)option;
    if (strcmp(text, "hash") == 0) {
        end = "";
    } else if (strchr(text, ',') == NULL) {
        end = read_number(text, INT64_MIN, INT64_MAX, &key.whole);
        key.form = STORE_PG_KEY_BIGINT;
    } else {
        end = read_number(text, INT32_MIN, INT32_MAX, &first);
        end =
            end != NULL && *end == ',' ? read_number(end + 1, INT32_MIN, INT32_MAX, &second) : NULL;
        if (end != NULL) {
            key.form = STORE_PG_KEY_INTS;
            key.first = (int32_t)first;
            key.second = (int32_t)second;
        }
    }
    if (end == NULL || *end != '\0') {
        error_set(error, "is not a key: hash, one whole number of 64 bits, or two of 32 bits with "
                         "a comma between, as in 7,42");
        return false;
    }
    config->postgres.key = key;
    return true;
}

static bool is_printable(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

bool take_pg_schema(const struct option *option, const char *text, struct config *config,
                    struct error *error) {
    if (strlen(text) > IDENTIFIER_MAX || !is_printable(text)) {
        error_set(error, "is not a schema's name: at most %d printable ASCII characters",
                  IDENTIFIER_MAX);
        return false;
    }
    return take_text(option, text, config, error);
}

/* Where the SQL identifier that starts here ends, quoted or not; NULL: none does. */
static const char *identifier_end(const char *at) {
    if (*at == '"') {
        const char *end = at + 1;
        while (*end != '\0' && (end[0] != '"' || end[1] == '"')) {
            end += *end == '"' ? 2 : 1;
        }
        return *end == '"' && end > at + 1 ? end + 1 : NULL;
    }
    const char *end = at;
    while (isalnum((unsigned char)*end) || *end == '_' || *end == '$') {
        end++;
    }
    return end > at && !isdigit((unsigned char)*at) && *at != '$' ? end : NULL;
}

/* SCHEMA.NAME: a name alone would be looked for where the role's search_path says, and not be
 * found under ours. */
static bool is_qualified(const char *name) {
    const char *end = identifier_end(name);
    end = end != NULL && *end == '.' ? identifier_end(end + 1) : NULL;
    return end != NULL && *end == '\0';
}

bool take_pg_token(const struct option *option, const char *text, struct config *config,
                   struct error *error) {
    size_t prefix = sizeof sequence_prefix - 1;
    if (strcmp(text, "row") == 0) {
        return true;
    }
    const char *name = text + prefix;
    if (strncmp(text, sequence_prefix, prefix) != 0 || strlen(name) > SEQUENCE_MAX ||
        !is_printable(name) || !is_qualified(name)) {
        error_set(error, "is neither row nor sequence:SCHEMA.NAME, both as in SQL, the schema "
                         "never left out: sequence:public.gavel_tokens");
        return false;
    }
    return take_text(option, name, config, error);
}

void show_pg_key(const struct option *option, const struct config *config, FILE *out) {
    const struct store_pg_key *key = &config->postgres.key;
    (void)option;
    switch (key->form) {
    case STORE_PG_KEY_HASH:
        (void)fputs("hash", out);
        break;
    case STORE_PG_KEY_BIGINT:
        (void)fprintf(out, "%" PRId64, key->whole);
        break;
    case STORE_PG_KEY_INTS:
        (void)fprintf(out, "%" PRId32 ",%" PRId32, key->first, key->second);
        break;
    }
}

void show_pg_token(const struct option *option, const struct config *config, FILE *out) {
    (void)fputs(config->pg_sequence != NULL ? sequence_prefix : "row", out);
    if (config->pg_sequence != NULL) {
        show_text(option, config, out);
    }
}
