#include "store/postgres/gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_LEAST 140000 /* PostgreSQL 14: idle_session_timeout */

const char *pg_value(const PGresult *result, int row, const char *column) {
    int number = PQfnumber(result, column);
    bool there = number >= 0 && row < PQntuples(result) && PQgetisnull(result, row, number) == 0;
    return there ? PQgetvalue(result, row, number) : "";
}

const PGresult *pg_result(const struct pg_answers *answers, const char *first_column) {
    for (size_t i = 0; i < answers->count; i++) {
        const char *name = PQfname(answers->list[i], 0);
        if (name != NULL && strcmp(name, first_column) == 0) {
            return answers->list[i];
        }
    }
    return NULL;
}

bool pg_is_true(const char *value) {
    return value[0] == 't' && value[1] == '\0';
}

static bool say(struct pg_verdict *verdict, enum pg_failure failure, const char *text) {
    verdict->failure = failure;
    pg_text(verdict->text, sizeof verdict->text, text);
    return false;
}

static bool strange(struct pg_verdict *verdict) {
    return say(verdict, PG_FAILURE_OTHER, "a strange answer: this is not PostgreSQL");
}

/* The columns of deploy/sql/gavel_election.sql, in order of their names. */
static const char columns[] = "backend clean granted holder lock_classid lock_objid lock_objsubid "
                              "longest_ttl_ms name namespace nonce prior seen server token ttl_ms";

static bool check_table(struct pg_gate *gate, const struct pg_answers *answers,
                        struct pg_verdict *verdict) {
    const struct store_postgres *options = gate->plan->options;
    const char *schema = options->schema != NULL ? options->schema : "public";
    const PGresult *table = pg_result(answers, "kind");
    char text[2 * PG_TEXT];
    if (table == NULL || PQntuples(table) == 0) {
        (void)snprintf(text, sizeof text, "there is no schema %.40s (--pg-schema)", schema);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    const char *kind = pg_value(table, 0, "kind");
    gate->missing = kind[0] == '\0';
    if (!pg_is_true(pg_value(table, 0, "usage"))) {
        (void)snprintf(text, sizeof text,
                       "role %.30s has no USAGE on schema %.30s: run deploy/sql/grants.sql",
                       gate->role, schema);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    if (gate->missing) {
        (void)snprintf(text, sizeof text,
                       "table %.24s.gavel_election is missing, role %.24s may not make it: run "
                       "deploy/sql/gavel_election.sql and grants.sql",
                       schema, gate->role);
        return pg_is_true(pg_value(table, 0, "creates")) || say(verdict, PG_FAILURE_CONFIG, text);
    }
    if (kind[0] != 'r' || pg_value(table, 0, "persistence")[0] != 'p') {
        (void)snprintf(text, sizeof text,
                       "%.30s.gavel_election has to be a permanent table: ALTER TABLE ... SET "
                       "LOGGED, or make it anew by deploy/sql/gavel_election.sql",
                       schema);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    if (strcmp(pg_value(table, 0, "columns"), columns) != 0) {
        (void)snprintf(text, sizeof text,
                       "%.30s.gavel_election has other columns than deploy/sql/gavel_election.sql",
                       schema);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    (void)snprintf(text, sizeof text,
                   "role %.30s needs SELECT, INSERT, UPDATE on %.30s.gavel_election: run "
                   "deploy/sql/grants.sql",
                   gate->role, schema);
    return pg_is_true(pg_value(table, 0, "granted")) || say(verdict, PG_FAILURE_CONFIG, text);
}

static bool check_sequence(struct pg_gate *gate, const struct pg_answers *answers,
                           struct pg_verdict *verdict) {
    const PGresult *sequence = pg_result(answers, "sequence");
    char text[2 * PG_TEXT];
    if (gate->plan->sequence == NULL) {
        return true;
    }
    if (sequence == NULL || strcmp(pg_value(sequence, 0, "sequence"), "S") != 0) {
        (void)snprintf(text, sizeof text, "there is no sequence %.60s (--pg-token)",
                       gate->plan->options->sequence);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    if (strcmp(pg_value(sequence, 0, "cache"), "1") != 0 ||
        strtol(pg_value(sequence, 0, "step"), NULL, 10) <= 0 ||
        pg_is_true(pg_value(sequence, 0, "cycle")) ||
        strcmp(pg_value(sequence, 0, "persistence"), "p") != 0) {
        (void)snprintf(text, sizeof text,
                       "sequence %.40s would give tokens out of order: ALTER SEQUENCE ... "
                       "CACHE 1 INCREMENT 1 NO CYCLE, and logged",
                       gate->plan->options->sequence);
        return say(verdict, PG_FAILURE_CONFIG, text);
    }
    (void)snprintf(text, sizeof text, "role %.30s needs USAGE on sequence %.60s: GRANT it",
                   gate->role, gate->plan->options->sequence);
    return pg_is_true(pg_value(sequence, 0, "granted")) || say(verdict, PG_FAILURE_CONFIG, text);
}

static bool check_server(struct pg_gate *gate, const PGresult *facts, struct pg_verdict *verdict) {
    if (strtol(pg_value(facts, 0, "version"), NULL, 10) < VERSION_LEAST) {
        return say(verdict, PG_FAILURE_CONFIG, "the server is older than PostgreSQL 14");
    }
    if (pg_is_true(pg_value(facts, 0, "recovery"))) {
        return say(verdict, PG_FAILURE_SERVER,
                   "not-primary: the server is a standby in recovery, its locks mean nothing");
    }
    if (strcmp(pg_value(facts, 0, "read_only"), "off") != 0) {
        return say(verdict, PG_FAILURE_SERVER,
                   "read-only: default_transaction_read_only is on, nobody can be elected");
    }
    if (strcmp(pg_value(facts, 0, "held"), "0") != 0) {
        return say(verdict, PG_FAILURE_CONFIG,
                   "pooler-detected: a new session holds an advisory lock of somebody else's");
    }
    pg_text(gate->place.identity, sizeof gate->place.identity, pg_value(facts, 0, "identity"));
    pg_text(gate->place.database, sizeof gate->place.database, pg_value(facts, 0, "database"));
    pg_text(gate->place.backend, sizeof gate->place.backend, pg_value(facts, 0, "backend"));
    pg_text(gate->role, sizeof gate->role, pg_value(facts, 0, "role"));
    gate->place.pid = (int)strtol(pg_value(facts, 0, "pid"), NULL, 10);
    bool whole = gate->place.identity[0] != '\0' && gate->place.database[0] != '\0' &&
                 gate->place.backend[0] != '\0' && gate->place.pid > 0;
    return whole || strange(verdict);
}

bool pg_check_facts(struct pg_gate *gate, const struct pg_answers *answers,
                    struct pg_verdict *verdict) {
    const PGresult *facts = pg_result(answers, "pid");
    if (facts == NULL || PQntuples(facts) != 1) {
        return strange(verdict);
    }
    int pid = gate->place.pid;
    bool again = gate->second.state != PG_LINK_DOWN;
    if (!check_server(gate, facts, verdict)) {
        return false;
    }
    if (again && pid != gate->place.pid && !gate->plan->options->transaction) {
        return say(verdict, PG_FAILURE_CONFIG, "pooler-detected: the session changed");
    }
    gate->proxied = gate->proxied || PQbackendPID(gate->link->conn) != gate->place.pid;
    return check_table(gate, answers, verdict) && check_sequence(gate, answers, verdict);
}

static bool shared(struct pg_verdict *verdict) {
    return say(verdict, PG_FAILURE_CONFIG,
               "pooler-detected: it shares sessions out, a session's lock is nobody's: connect to "
               "PostgreSQL itself, or use --pg-lock transaction");
}

bool pg_check_second(struct pg_gate *gate, const struct pg_answers *answers,
                     struct pg_verdict *verdict) {
    const PGresult *facts = pg_result(answers, "pid");
    if (facts == NULL || PQntuples(facts) != 1) {
        return strange(verdict);
    }
    if (strcmp(pg_value(facts, 0, "identity"), gate->place.identity) != 0) {
        return say(verdict, PG_FAILURE_SERVER, "two connections to one address reach two servers");
    }
    int pid = (int)strtol(pg_value(facts, 0, "pid"), NULL, 10);
    if (gate->plan->options->transaction) {
        return true;
    }
    gate->proxied = gate->proxied || PQbackendPID(gate->second.conn) != pid;
    return pid != gate->place.pid || shared(verdict);
}

bool pg_check_same(struct pg_gate *gate, const struct pg_answers *answers,
                   struct pg_verdict *verdict) {
    const PGresult *facts = pg_result(answers, "pid");
    if (facts == NULL || PQntuples(facts) != 1) {
        return strange(verdict);
    }
    if (gate->plan->options->transaction) {
        return true;
    }
    if (strcmp(pg_value(facts, 0, "backend"), gate->place.backend) != 0) {
        return shared(verdict);
    }
    if (gate->proxied && !gate->plan->options->session_pooler) {
        return say(verdict, PG_FAILURE_CONFIG,
                   "pooler-detected: connect to PostgreSQL itself; if it pools sessions, "
                   "--pg-pooler session; if transactions, --pg-lock transaction");
    }
    return true;
}

static const char *setting(const PGresult *settings, const char *name) {
    for (int row = 0; row < PQntuples(settings); row++) {
        if (strcmp(pg_value(settings, row, "settings"), name) == 0) {
            return pg_value(settings, row, "setting");
        }
    }
    return "";
}

bool pg_check_settings(const struct pg_gate *gate, const struct pg_answers *answers,
                       struct pg_verdict *verdict) {
    const struct pg_plan *plan = gate->plan;
    const struct {
        const char *name;
        int64_t value;
    } wanted[] = {{"idle_session_timeout", plan->lease_ms},
                  {"idle_in_transaction_session_timeout", plan->lease_ms},
                  {"statement_timeout", plan->attempt_ms},
                  {"lock_timeout", plan->attempt_ms},
                  {"client_connection_check_interval", plan->attempt_ms}};
    const PGresult *settings = pg_result(answers, "settings");
    if (settings == NULL) {
        return strange(verdict);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char number[24];
        char text[PG_TEXT];
        (void)snprintf(number, sizeof number, "%" PRId64, wanted[i].value);
        if (strcmp(setting(settings, wanted[i].name), number) != 0) {
            (void)snprintf(text, sizeof text, "%s was set to %s ms and is %.20s", wanted[i].name,
                           number, setting(settings, wanted[i].name));
            return say(verdict, PG_FAILURE_CONFIG, text);
        }
    }
    return strcmp(setting(settings, "search_path"), "pg_catalog") == 0 || strange(verdict);
}
