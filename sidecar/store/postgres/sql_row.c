#include "store/postgres/sql.h"

#include "election/election.h"

#include <inttypes.h>

#define STATEMENT_MORE_MS 1000

/* The statements of the row connection: the token rule, the clean mark, probes that write. */

/* Whether a standby confirms what the statement writes. */
#define STANDBYS "current_setting('synchronous_standby_names') <> ''"
#define RETURNED_STANDBYS STANDBYS " AS standbys, current_setting('synchronous_commit') AS commit"

/* A role's default of synchronous_commit = off would let a crash forge token and mark. A wait for
 * the row ends before the request's time does, so that the lock can still be given back; a process
 * of the server that is slow the first time may end its work. */
static void begin(struct pg_sql *sql, const struct pg_plan *plan) {
    pg_sql_add(sql,
               "BEGIN ISOLATION LEVEL READ COMMITTED;"
               "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true) AS path,"
               " pg_catalog.set_config('lock_timeout', '%" PRId64 "', true),"
               " pg_catalog.set_config('statement_timeout', '%" PRId64 "', true),"
               " pg_catalog.set_config('idle_in_transaction_session_timeout', '%" PRId64 "', true),"
               " pg_catalog.set_config('synchronous_commit', CASE"
               " pg_catalog.current_setting('synchronous_commit') WHEN 'remote_apply' THEN"
               " 'remote_apply' ELSE 'on' END, true);",
               plan->attempt_ms / 2, plan->attempt_ms + STATEMENT_MORE_MS, plan->lease_ms);
}

static void add_key(struct pg_sql *sql, const struct pg_key *key) {
    pg_sql_add(sql,
               "lock_classid = %" PRIu32 "::oid AND lock_objid = %" PRIu32
               "::oid AND lock_objsubid = %u",
               key->classid, key->objid, key->objsubid);
}

/* The lock connection's process holds the key, seen from this one: so both talk to one server. */
static void add_held(struct pg_sql *sql, const struct pg_row_job *job) {
    pg_sql_add(sql,
               "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND"
               " mode = 'ExclusiveLock' AND database = %s AND pid = %d AND classid = %" PRIu32
               "::oid AND objid = %" PRIu32 "::oid AND objsubid = %u)",
               job->place->database, job->place->pid, job->name->key.classid, job->name->key.objid,
               job->name->key.objsubid);
}

static void add_here(struct pg_sql *sql, const char *server) {
    pg_sql_add(sql, "%s = ", pg_identity_sql);
    pg_sql_literal(sql, server);
}

/* The rule, but for what is recorded. */
static void add_least_token(struct pg_sql *sql, const struct pg_plan *plan,
                            const struct pg_row_job *job) {
    pg_sql_add(sql,
               "greatest(%" PRIu64 ", %" PRIu64
               ", floor(extract(epoch FROM clock_timestamp()) * 1000)::int8",
               job->seen_token + 1, plan->setup->token_floor);
    if (plan->sequence != NULL) {
        pg_sql_add(sql, ", nextval(%s::regclass)", plan->sequence);
    }
    pg_sql_add(sql, ")");
}

static void end(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job) {
    if (plan->options->synchronous) {
        pg_sql_add(sql, "SELECT " RETURNED_STANDBYS ";");
    }
    pg_sql_add(sql, "SELECT left(namespace, 300) AS row, left(name, 300) AS name, token,"
                    " left(nonce, 300) AS nonce, ");
    add_held(sql, job);
    pg_sql_add(sql, " AS held, ");
    add_here(sql, job->place->identity);
    pg_sql_add(sql, " AS here FROM %s WHERE ", plan->table);
    add_key(sql, &job->name->key);
    pg_sql_add(sql, ";COMMIT");
}

static void mint(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job,
                 const char *explain) {
    const struct pg_key *key = &job->name->key;
    begin(sql, plan);
    pg_sql_add(sql, "%sWITH x AS MATERIALIZED (SELECT ", explain);
    add_least_token(sql, plan, job);
    pg_sql_add(sql,
               " AS least) INSERT INTO %s AS e (lock_classid, lock_objid, lock_objsubid,"
               " namespace, name, token, holder, nonce, backend, ttl_ms, longest_ttl_ms, granted,"
               " seen, clean, prior, server) SELECT %" PRIu32 "::oid, %" PRIu32 "::oid, %u, ",
               plan->table, key->classid, key->objid, key->objsubid);
    pg_sql_literal(sql, job->name->namespace_);
    pg_sql_add(sql, ", ");
    pg_sql_literal(sql, job->name->name);
    pg_sql_add(sql, ", least, ");
    pg_sql_literal(sql, plan->setup->identity);
    pg_sql_add(sql,
               ", '%s', %d, %" PRId64 ", %" PRId64
               ", clock_timestamp(), clock_timestamp(), false, 'no-record', ",
               job->nonce, job->place->pid, plan->ttl_ms, plan->ttl_ms);
    pg_sql_literal(sql, job->place->identity);
    pg_sql_add(sql, " FROM x WHERE least <= %" PRIu64 " AND ", TOKEN_MAX);
    add_here(sql, job->place->identity);
    pg_sql_add(sql, " AND ");
    add_held(sql, job);
    /* A token that no standby has would be written again and again, and the mark be lost. */
    pg_sql_add(sql, "%s", plan->options->synchronous ? " AND " STANDBYS : "");
    /* How the grant before ended is kept with this one: a retry of it is told the same. A table
     * that somebody made by hand may have NULLs, and they prove nothing. */
    pg_sql_add(sql,
               " ON CONFLICT (lock_classid, lock_objid, lock_objsubid) DO UPDATE SET"
               " token = greatest(e.token + 1, excluded.token), holder = excluded.holder,"
               " nonce = excluded.nonce, backend = excluded.backend, ttl_ms = excluded.ttl_ms,"
               " longest_ttl_ms = CASE WHEN e.clean AND e.server = excluded.server AND"
               " e.token >= %" PRIu64 " AND e.nonce <> excluded.nonce THEN excluded.ttl_ms"
               " ELSE greatest(e.longest_ttl_ms, excluded.ttl_ms) END,"
               " granted = excluded.granted, seen = excluded.seen, clean = false,"
               " prior = CASE WHEN (e.token >= %" PRIu64 ") IS NOT TRUE THEN 'token-behind'"
               " WHEN e.server IS DISTINCT FROM excluded.server THEN 'other-server'"
               " WHEN e.nonce = excluded.nonce THEN e.prior"
               " WHEN e.clean IS NOT TRUE THEN 'unclean' ELSE 'clean' END,"
               " server = excluded.server"
               " WHERE e.namespace = excluded.namespace AND e.name = excluded.name AND"
               " greatest(e.token + 1, excluded.token) <= %" PRIu64
               " RETURNING token AS minted, prior, longest_ttl_ms,"
               " floor(extract(epoch FROM granted) * 1000)::int8 AS granted_ms, " RETURNED_STANDBYS
               ";",
               job->seen_token, job->seen_token, TOKEN_MAX);
    end(sql, plan, job);
}

void pg_sql_mint(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job) {
    mint(sql, plan, job, "");
}

void pg_sql_plan_mint(struct pg_sql *sql, const struct pg_plan *plan,
                      const struct pg_row_job *job) {
    mint(sql, plan, job, "EXPLAIN ");
}

void pg_sql_raise(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job) {
    begin(sql, plan);
    pg_sql_add(sql, "WITH x AS MATERIALIZED (SELECT ");
    add_least_token(sql, plan, job);
    pg_sql_add(sql,
               " AS least) UPDATE %s AS e SET token = greatest(e.token + 1, x.least) FROM x"
               " WHERE ",
               plan->table);
    add_key(sql, &job->name->key);
    pg_sql_add(sql, " AND e.nonce = '%s' AND greatest(e.token + 1, x.least) <= %" PRIu64 " AND ",
               job->nonce, TOKEN_MAX);
    add_here(sql, job->place->identity);
    pg_sql_add(sql, " AND ");
    add_held(sql, job);
    pg_sql_add(sql, " RETURNING e.token AS raised, " RETURNED_STANDBYS ";");
    end(sql, plan, job);
}

void pg_sql_mark(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job,
                 const char *server) {
    begin(sql, plan);
    pg_sql_add(sql, "UPDATE %s SET clean = true WHERE ", plan->table);
    add_key(sql, &job->name->key);
    pg_sql_add(sql, " AND nonce = '%s' AND token = %" PRIu64 " AND server = ", job->nonce,
               job->token);
    pg_sql_literal(sql, server);
    pg_sql_add(sql, " AND ");
    add_here(sql, server);
    pg_sql_add(sql, " RETURNING true AS marked;");
    end(sql, plan, job);
}

void pg_sql_beat(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job) {
    begin(sql, plan);
    pg_sql_add(sql, "UPDATE %s SET seen = clock_timestamp() WHERE ", plan->table);
    add_key(sql, &job->name->key);
    pg_sql_add(sql, " AND nonce = '%s' AND token = %" PRIu64 " AND ", job->nonce, job->token);
    add_here(sql, job->place->identity);
    pg_sql_add(sql, " AND ");
    add_held(sql, job);
    pg_sql_add(sql, " RETURNING true AS beaten, " RETURNED_STANDBYS ";");
    end(sql, plan, job);
}

void pg_sql_row(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_row_job *job) {
    begin(sql, plan);
    end(sql, plan, job);
}

void pg_sql_notify(struct pg_sql *sql, const struct pg_name *name, bool clean) {
    pg_sql_add(sql, "SELECT pg_catalog.pg_notify('" PG_CHANNEL "', '%s%s') AS told", name->key.text,
               clean ? " clean" : "");
}

#define LEAVING_SESSIONS_MOST 8

void pg_sql_notify_leaving(struct pg_sql *sql, const struct pg_name *name) {
    pg_sql_add(
        sql,
        "SELECT pg_catalog.pg_notify('" PG_CHANNEL "', '%s leaving') AS told"
        " FROM (SELECT pg_catalog.count(*) AS sidecars FROM pg_catalog.pg_stat_get_activity(NULL)"
        " WHERE pg_catalog.starts_with(application_name, '" PG_APPLICATION "')) AS sessions"
        " WHERE sidecars OPERATOR(pg_catalog.>) 0 AND"
        " sidecars OPERATOR(pg_catalog.<=) %d",
        name->key.text, LEAVING_SESSIONS_MOST);
}
