#include "store/postgres/failure.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The longest prefix that fits decides; a state stands before its class. */
static const struct {
    const char *prefix;
    enum pg_failure failure;
} states[] = {
    {"57014", PG_FAILURE_LATER},  /* query_canceled: statement_timeout too */
    {"57P01", PG_FAILURE_LOST},   /* admin_shutdown, pg_terminate_backend */
    {"57P02", PG_FAILURE_LOST},   /* crash_shutdown */
    {"57P03", PG_FAILURE_LATER},  /* cannot_connect_now */
    {"57P04", PG_FAILURE_CONFIG}, /* database_dropped */
    {"57P05", PG_FAILURE_LOST},   /* idle_session_timeout */
    {"25P03", PG_FAILURE_LOST},   /* idle_in_transaction_session_timeout */
    {"25P04", PG_FAILURE_LOST},   /* transaction_timeout */
    {"25006", PG_FAILURE_SERVER}, /* read_only_sql_transaction */
    {"55P03", PG_FAILURE_LATER},  /* lock_not_available */
    {"55000", PG_FAILURE_SERVER}, /* what recovery refuses */
    {"08P01", PG_FAILURE_OTHER},  /* protocol violation: poolers say much with it */
    {"08", PG_FAILURE_LOST},      /* connection exceptions */
    {"28", PG_FAILURE_CONFIG},    /* authorization */
    {"3D", PG_FAILURE_CONFIG},    /* no such database */
    {"3F", PG_FAILURE_CONFIG},    /* no such schema */
    {"40", PG_FAILURE_LATER},     /* deadlock, serialization */
    {"42", PG_FAILURE_CONFIG},    /* privilege, no such table or function */
    {"53", PG_FAILURE_LATER},     /* connections, memory, disk */
    {"57", PG_FAILURE_LOST},      {"XX", PG_FAILURE_OTHER},
};

enum pg_failure pg_failure_of(const char *sqlstate) {
    if (sqlstate == NULL || sqlstate[0] == '\0') {
        return PG_FAILURE_LOST;
    }
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strncmp(states[i].prefix, sqlstate, strlen(states[i].prefix)) == 0) {
            return states[i].failure;
        }
    }
    return PG_FAILURE_OTHER;
}

const char *pg_failure_fix(const char *sqlstate) {
    static const struct {
        const char *state;
        const char *fix;
    } fixes[] = {
        {"28P01", "the password comes from PGPASSFILE, ~/.pgpass or PGPASSWORD"},
        {"28000", "the server has no such user, or its pg_hba.conf does not let it in"},
        {"3D000", "create it, or name another one at the end of the URL"},
        {"53300", "max_connections of the server allows no more"},
    };
    for (size_t i = 0; i < sizeof fixes / sizeof fixes[0]; i++) {
        if (strcmp(fixes[i].state, sqlstate) == 0) {
            return fixes[i].fix;
        }
    }
    return "";
}

enum pg_failure pg_failure_of_words(const char *words, const char **fix) {
    static const struct {
        const char *part;
        enum pg_failure failure;
        const char *fix;
    } known[] = {
        {"read-only", PG_FAILURE_SERVER, ""}, /* for target_session_attrs */
        {"certificate verify failed", PG_FAILURE_CONFIG,
         "sslrootcert has to name the authority that signed the server's certificate"},
        {"does not match host name", PG_FAILURE_CONFIG, "connect by the name that it has"},
        {"does not support SSL", PG_FAILURE_CONFIG,
         "turn ssl on in the server, or choose another sslmode"},
        {"channel binding", PG_FAILURE_CONFIG,
         "channel_binding=require needs TLS and a password checked by scram-sha-256"},
        {"certificate", PG_FAILURE_CONFIG, ""}, /* a file that is not there, an alert, ... */
        {"private key", PG_FAILURE_CONFIG, ""},
        {" alert ", PG_FAILURE_CONFIG, ""},
        {"unsupported protocol", PG_FAILURE_CONFIG, ""},
        {"wrong version number", PG_FAILURE_CONFIG, ""},
        {"SSL protocol version", PG_FAILURE_CONFIG, ""},
        {"verified SSL connection", PG_FAILURE_CONFIG, ""},
        {"SCRAM", PG_FAILURE_CONFIG, ""},
        {"SASL", PG_FAILURE_CONFIG, ""},
        {"authentication method", PG_FAILURE_CONFIG, ""},
        {"invalid ", PG_FAILURE_CONFIG, ""}, /* invalid sslmode value: "maybe" */
    };
    *fix = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(words, known[i].part) != NULL) {
            *fix = known[i].fix;
            return known[i].failure;
        }
    }
    return PG_FAILURE_LOST;
}

const char *pg_failure_name(enum pg_failure failure) {
    static const char *const names[] = {"lost", "not-now", "configuration", "wrong-server",
                                        "other"};
    return names[failure];
}

void pg_text(char *out, size_t size, const char *text) {
    size_t used = 0;
    for (; text != NULL && *text != '\0' && *text != '\n' && used + 1 < size; text++) {
        out[used++] = *text;
        if (*text < ' ' || *text > '~') {
            out[used - 1] = '?';
        }
    }
    out[used] = '\0';
}

static bool is_state(const char *at) {
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)at[i]) && !(at[i] >= 'A' && at[i] <= 'Z')) {
            return false;
        }
    }
    return at[5] == ':' && at[6] == ' ';
}

bool pg_failure_read(const char *verbose, char sqlstate[PG_SQLSTATE], char *text, size_t size) {
    sqlstate[0] = '\0';
    for (const char *at = strstr(verbose, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        if (strlen(at) > 10 && is_state(at + 3)) {
            memcpy(sqlstate, at + 3, PG_SQLSTATE - 1);
            sqlstate[PG_SQLSTATE - 1] = '\0';
            pg_text(text, size, at + 10);
            return true;
        }
    }
    /* Where it was tried is told anyway, and the rest is what matters. */
    const char *words =
        strncmp(verbose, "connection to server ", 21) == 0 ? strstr(verbose, " failed: ") : NULL;
    pg_text(text, size, words != NULL ? words + 9 : verbose);
    return false;
}
