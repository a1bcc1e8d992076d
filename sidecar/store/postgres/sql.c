#include "store/postgres/sql.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct pg_sql *sql, size_t more) {
    if (sql->length + more + 1 > sql->capacity) {
        sql->capacity = (sql->length + more + 1) * 2;
        sql->text = memory_grow(sql->text, sql->capacity, 1);
    }
}

void pg_sql_add(struct pg_sql *sql, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        abort(); /* out of memory */
    }
    reserve(sql, (size_t)length);
    memcpy(sql->text + sql->length, text, (size_t)length + 1);
    sql->length += (size_t)length;
    free(text);
}

/* E'...' means the same whatever standard_conforming_strings is. */
void pg_sql_literal(struct pg_sql *sql, const char *text) {
    pg_sql_add(sql, "E'");
    reserve(sql, 2 * strlen(text));
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            sql->text[sql->length++] = *text;
        }
        sql->text[sql->length++] = *text;
    }
    sql->text[sql->length] = '\0';
    pg_sql_add(sql, "'");
}

void pg_sql_identifier(struct pg_sql *sql, const char *name) {
    pg_sql_add(sql, "\"");
    reserve(sql, 2 * strlen(name));
    for (; *name != '\0'; name++) {
        if (*name == '"') {
            sql->text[sql->length++] = '"';
        }
        sql->text[sql->length++] = *name;
    }
    sql->text[sql->length] = '\0';
    pg_sql_add(sql, "\"");
}

void pg_plan_init(struct pg_plan *plan, const struct store_setup *setup) {
    static const struct store_postgres none;
    memset(plan, 0, sizeof *plan);
    plan->setup = setup;
    plan->options = setup->postgres != NULL ? setup->postgres : &none;
    struct pg_sql table = {0};
    pg_sql_identifier(&table, plan->options->schema != NULL ? plan->options->schema : "public");
    pg_sql_add(&table, ".gavel_election");
    plan->table = table.text;
    if (plan->options->sequence != NULL) {
        struct pg_sql sequence = {0};
        pg_sql_literal(&sequence, plan->options->sequence);
        plan->sequence = sequence.text;
    }
    int64_t attempt_ns = setup->ttl_ns / 6;
    attempt_ns = attempt_ns < 2 * NS_PER_S ? attempt_ns : 2 * NS_PER_S;
    plan->attempt_ms = attempt_ns / NS_PER_MS;
    plan->lease_ms = (setup->ttl_ns + setup->margin_ns + NS_PER_MS - 1) / NS_PER_MS;
    plan->ttl_ms = (setup->ttl_ns + NS_PER_MS - 1) / NS_PER_MS;
}

void pg_plan_finish(struct pg_plan *plan) {
    free(plan->table);
    free(plan->sequence);
}

/* Who the server is. A restart, a promotion and another cluster are each another server. */
const char pg_identity_sql[] =
    "CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE pg_catalog.concat_ws('/',"
    " (SELECT system_identifier FROM pg_catalog.pg_control_system()),"
    " pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8),"
    " pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.pg_postmaster_start_time()),"
    " 'YYYYMMDDHH24MISSUS')) END";

/* One of the server's processes: a pid alone may come again. */
static const char backend[] =
    "(SELECT pg_catalog.concat_ws('/', pid,"
    " pg_catalog.to_char(pg_catalog.timezone('UTC', backend_start), 'YYYYMMDDHH24MISSUS'))"
    " FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()))";

void pg_sql_facts(struct pg_sql *sql) {
    pg_sql_add(sql,
               "SELECT pg_catalog.pg_backend_pid() AS pid, %s AS backend,"
               " pg_catalog.pg_is_in_recovery() AS recovery,"
               " pg_catalog.current_setting('transaction_read_only') AS read_only,"
               " pg_catalog.current_setting('server_version_num') AS version, %s AS identity,"
               " (SELECT oid FROM pg_catalog.pg_database WHERE datname"
               " OPERATOR(pg_catalog.=) pg_catalog.current_database()) AS database,"
               " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks WHERE locktype"
               " OPERATOR(pg_catalog.=) 'advisory' AND pid OPERATOR(pg_catalog.=)"
               " pg_catalog.pg_backend_pid()) AS held, current_user AS role;",
               backend, pg_identity_sql);
}

void pg_sql_table(struct pg_sql *sql, const struct pg_plan *plan) {
    pg_sql_add(sql,
               "SELECT c.relkind AS kind, c.relpersistence AS persistence,"
               " pg_catalog.has_table_privilege(c.oid, 'SELECT') AND"
               " pg_catalog.has_table_privilege(c.oid, 'INSERT') AND"
               " pg_catalog.has_table_privilege(c.oid, 'UPDATE') AS granted,"
               " pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS usage,"
               " pg_catalog.has_schema_privilege(n.oid, 'CREATE') AS creates,"
               " (SELECT pg_catalog.string_agg(attname, ' ' ORDER BY attname)"
               " FROM pg_catalog.pg_attribute WHERE attrelid OPERATOR(pg_catalog.=) c.oid"
               " AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped) AS columns"
               " FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c"
               " ON c.relnamespace OPERATOR(pg_catalog.=) n.oid AND c.relname"
               " OPERATOR(pg_catalog.=) 'gavel_election' WHERE n.nspname OPERATOR(pg_catalog.=) ");
    pg_sql_literal(sql, plan->options->schema != NULL ? plan->options->schema : "public");
    pg_sql_add(sql, ";");
    if (plan->sequence != NULL) {
        pg_sql_add(sql,
                   "SELECT c.relkind AS sequence, c.relpersistence AS persistence, s.seqcache"
                   " AS cache, s.seqincrement AS step, s.seqcycle AS cycle,"
                   " pg_catalog.has_sequence_privilege(c.oid, 'USAGE') AS granted"
                   " FROM (SELECT pg_catalog.to_regclass(%s) AS oid) n"
                   " LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) n.oid"
                   " LEFT JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=)"
                   " n.oid;",
                   plan->sequence);
    }
}

void pg_sql_create(struct pg_sql *sql, const struct pg_plan *plan) {
    static const char name[] = "public.gavel_election";
    const char *from = pg_table_sql;
    for (const char *at = strstr(from, name); at != NULL; at = strstr(from, name)) {
        pg_sql_add(sql, "%.*s%s", (int)(at - from), from, plan->table);
        from = at + strlen(name);
    }
    pg_sql_add(sql, "%s", from);
}

static void set(struct pg_sql *sql, const char *name, int64_t number, bool local) {
    pg_sql_add(sql, ", pg_catalog.set_config('%s', '%" PRId64 "', %s)", name, number,
               local ? "true" : "false");
}

void pg_sql_settings(struct pg_sql *sql, const struct pg_plan *plan, bool local) {
    int64_t second_ms = NS_PER_S / NS_PER_MS;
    int64_t idle_s = (plan->ttl_ms + 2 * second_ms - 1) / (2 * second_ms);
    pg_sql_add(sql, "SELECT pg_catalog.set_config('search_path', 'pg_catalog', %s) AS path",
               local ? "true" : "false");
    set(sql, "idle_session_timeout", plan->lease_ms, local);
    set(sql, "idle_in_transaction_session_timeout", plan->lease_ms, local);
    set(sql, "statement_timeout", plan->attempt_ms, local);
    set(sql, "lock_timeout", plan->attempt_ms, local);
    set(sql, "client_connection_check_interval", plan->attempt_ms, local);
    /* Never over before the lease is: the holder may still be there. */
    set(sql, "tcp_keepalives_idle", idle_s, local);
    set(sql, "tcp_keepalives_interval", (idle_s + 1) / 2, local);
    set(sql, "tcp_keepalives_count", 3, local);
    set(sql, "tcp_user_timeout", plan->lease_ms, local);
    pg_sql_add(sql, ";");
}

void pg_sql_read_settings(struct pg_sql *sql) {
    pg_sql_add(sql, "SELECT name AS settings, setting FROM pg_catalog.pg_settings WHERE name IN"
                    " ('idle_session_timeout', 'idle_in_transaction_session_timeout',"
                    " 'statement_timeout', 'lock_timeout', 'client_connection_check_interval',"
                    " 'tcp_user_timeout', 'search_path');");
}

void pg_sql_unlock(struct pg_sql *sql, const struct pg_name *name, size_t i, bool first) {
    pg_sql_add(sql, "%sSELECT %zu AS unlocked, pg_catalog.pg_advisory_unlock(%s) AS yes",
               first ? "" : " UNION ALL ", i, name->key.text);
}

/* Never a second time: locks stack. What is held shows as NULL. */
void pg_sql_try(struct pg_sql *sql, const struct pg_plan *plan, const struct pg_name *name,
                size_t i, bool first) {
    pg_sql_add(sql,
               "%sSELECT %zu AS tried, CASE WHEN NOT pg_is_in_recovery() AND NOT EXISTS (SELECT"
               " FROM own WHERE classid = %" PRIu32 "::oid AND objid = %" PRIu32
               "::oid AND objsubid = %u) THEN pg_try_advisory_%slock(%s) END AS yes",
               first ? "WITH own AS MATERIALIZED (SELECT classid, objid, objsubid FROM pg_locks"
                       " WHERE locktype = 'advisory' AND pid = pg_backend_pid()) "
                     : " UNION ALL ",
               i, name->key.classid, name->key.objid, name->key.objsubid,
               plan->options->transaction ? "xact_" : "", name->key.text);
}

void pg_sql_end(struct pg_sql *sql) {
    pg_sql_add(sql, ";");
}

void pg_sql_fact(struct pg_sql *sql, const char *nonce) {
    pg_sql_add(sql,
               "SELECT '%s' AS fact, %s AS backend, pg_catalog.pg_is_in_recovery() AS recovery,"
               " %s AS identity, (SELECT pg_catalog.count(*) FROM"
               " pg_catalog.pg_stat_get_wal_senders()) AS standbys;",
               nonce, backend, pg_identity_sql);
}

void pg_sql_keys_begin(struct pg_sql *sql) {
    pg_sql_add(sql, "WITH k (i, c, o, s) AS (VALUES ");
}

void pg_sql_key(struct pg_sql *sql, const struct pg_name *name, size_t i, bool first) {
    pg_sql_add(sql, "%s(%zu, %" PRIu32 "::oid, %" PRIu32 "::oid, %u::int2)", first ? "" : ", ", i,
               name->key.classid, name->key.objid, name->key.objsubid);
}

#define SAME_KEY(a) a ".classid = k.c AND " a ".objid = k.o AND " a ".objsubid = k.s"

void pg_sql_keys_end(struct pg_sql *sql, const struct pg_plan *plan, const char *database,
                     bool rows) {
    pg_sql_add(sql,
               "), l AS MATERIALIZED (SELECT classid, objid, objsubid, pid, mode FROM"
               " pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted AND database = %s),"
               " h AS (SELECT k.i, (SELECT count(*) FROM l WHERE " SAME_KEY(
                   "l") " AND l.pid ="
                        " pg_backend_pid() AND l.mode = 'ExclusiveLock') AS own,"
                        " (SELECT min(l.pid) FROM l WHERE " SAME_KEY(
                            "l") " AND l.pid <> pg_backend_pid())"
                                 " AS other FROM k)"
                                 " SELECT k.i AS key, h.own, h.other, (SELECT application_name FROM"
                                 " pg_stat_get_activity(h.other)  WHERE h.other IS NOT NULL) AS "
                                 "application",
               database);
    /* Whoever may write to the table may write long texts: the answer stays short all the same. */
    if (rows) {
        pg_sql_add(sql, ", left(e.namespace, 300) AS namespace, left(e.name, 300) AS name, e.token,"
                        " left(e.holder, 300) AS holder, left(e.nonce, 300) AS nonce,"
                        " e.longest_ttl_ms,"
                        " e.backend, CASE WHEN isfinite(e.granted) THEN"
                        " floor(extract(epoch FROM e.granted) * 1000)::int8 END AS granted_ms");
    }
    pg_sql_add(sql, " FROM k JOIN h ON h.i = k.i");
    if (rows) {
        pg_sql_add(sql,
                   " LEFT JOIN %s e ON e.lock_classid = k.c AND e.lock_objid = k.o AND"
                   " e.lock_objsubid = k.s",
                   plan->table);
    }
    pg_sql_add(sql, ";");
}
