#ifndef GAVEL_STORE_POSTGRES_SQL_H
#define GAVEL_STORE_POSTGRES_SQL_H

#include "store/postgres/key.h"

/*
 * Every statement of the store. Nothing depends on a search_path: names are qualified until it has
 * been set to pg_catalog. What is put into a text is a number, or a literal or an identifier that
 * is escaped here.
 */

/* A text that grows. Zeroed is empty; free(text) ends it. */
struct pg_sql {
    char *text;
    size_t length;
    size_t capacity;
};
void pg_sql_add(struct pg_sql *sql, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pg_sql_literal(struct pg_sql *sql, const char *text); /* in any setting of the server */
void pg_sql_identifier(struct pg_sql *sql, const char *name);

/* Who the server is: an expression. */
extern const char pg_identity_sql[];

/* deploy/sql/gavel_election.sql, brought in by the build. */
extern const char pg_table_sql[];

/* What the statements of one store have in common; made once. */
struct pg_plan {
    const struct store_setup *setup;
    const struct store_postgres *options; /* never NULL */
    char *table;                          /* qualified and quoted */
    char *sequence;                       /* as a literal for regclass; NULL: none */
    int64_t attempt_ms;                   /* no statement may take longer */
    int64_t lease_ms;                     /* ttl + margin: the server's lease on an idle session */
    int64_t ttl_ms;
};
void pg_plan_init(struct pg_plan *plan, const struct store_setup *setup);
void pg_plan_finish(struct pg_plan *plan);

/* The server and the session, by their own words. */
struct pg_place {
    char identity[SERVER_ID_MAX]; /* system identifier, timeline, start; empty: in recovery */
    char database[16];            /* its oid */
    char backend[80];             /* pid and start */
    int pid;
};

/* An election's key and names. */
struct pg_name {
    struct pg_key key;
    const char *namespace_;
    const char *name;
};

/* For the gate, before anything is set or locked. `facts`: pid, backend, recovery, read_only,
 * version, identity, database, held, role. `table`: see gate_check.c. */
void pg_sql_facts(struct pg_sql *sql);
void pg_sql_table(struct pg_sql *sql, const struct pg_plan *plan);
void pg_sql_create(struct pg_sql *sql, const struct pg_plan *plan);
/* The session's own settings, for good or for this transaction; then `settings`: name, setting. */
void pg_sql_settings(struct pg_sql *sql, const struct pg_plan *plan, bool local);
void pg_sql_read_settings(struct pg_sql *sql);

/* On the lock connection. `what` for key number `i`: */
enum pg_lock_work { PG_LOOK, PG_TRY, PG_PROBE, PG_UNLOCK };
/* Statement names are those of the first column: unlocked(i, yes), tried(i, yes). `first`: the
 * first of them, which begins the statement; pg_sql_end() ends it. */
void pg_sql_unlock(struct pg_sql *sql, const struct pg_name *name, size_t i, bool first);
void pg_sql_try(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_name *name,
                size_t i, bool first);
void pg_sql_end(struct pg_sql *sql);
/* fact(nonce, backend, recovery, identity, standbys) */
void pg_sql_fact(struct pg_sql *sql, const char *nonce);
/* key(i, own, other, application, then the row's columns where `rows`) */
void pg_sql_keys_begin(struct pg_sql *sql);
void pg_sql_key(struct pg_sql *sql, const struct pg_name *name, size_t i, bool first);
void pg_sql_keys_end(struct pg_sql *sql, const struct pg_plan *plan, const char *database,
                     bool rows);

/* On the row connection: each is one message and one transaction. The first column tells what it
 * is: minted(prior, longest_ttl_ms, granted_ms), raised, marked, beaten, and
 * row(name, token, nonce, held, here) as it stands after that. What was written comes with
 * `standbys` and `commit`, whether a standby confirms it; alone too, with --pg-synchronous. */
struct pg_row_job {
    const struct pg_name *name;
    const struct pg_place *place; /* the lock connection's */
    char nonce[2 * NONCE_BYTES + 1];
    uint64_t seen_token;
    uint64_t token;
};
void pg_sql_mint(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job);
/* The same, and nothing is changed: the server only plans it. */
void pg_sql_plan_mint(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job);
void pg_sql_raise(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job);
void pg_sql_mark(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job,
                 const char *server);
void pg_sql_beat(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job);
void pg_sql_row(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job);
/* What the names of our sessions begin with, unless the URL has an application_name. */
#define PG_APPLICATION "gavel/"
/* Tells followers that the lock is free: "KEY clean" or "KEY" on PG_CHANNEL. */
#define PG_CHANNEL "gavel_released"
void pg_sql_notify(struct pg_sql *sql, const struct pg_name *name, bool clean);
/* That it soon will be: "KEY leaving". With many sidecars on the server nobody is told: all of them
 * would open a connection at once. */
void pg_sql_notify_leaving(struct pg_sql *sql, const struct pg_name *name);

#endif
