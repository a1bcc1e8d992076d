#include "store/postgres/parts.h"

#include "base/random.h"

#include <string.h>

/* What a request wanted when it came: an earlier one, whose time was over, may have got the lock
 * since. Locking again would stack, and a lock given back once would still be there. */
static enum pg_lock_work work_now(const struct pg_seat *seat) {
    const struct pg_op *op = &seat->op;
    bool released = op->type == STORE_RELEASED && op->lock_work == PG_LOOK;
    if (!seat->grant.held || (op->lock_work != PG_TRY && !released)) {
        return op->lock_work;
    }
    if (!pg_same_nonce(seat->grant.nonce, op->request.nonce)) {
        return PG_LOOK;
    }
    return released ? PG_UNLOCK : PG_PROBE;
}

/* Works through the seats that wait; what they want decides on the statements. */
void pg_message_collect(struct pg_session *session) {
    struct pg_store *store = session->store;
    session->entry_count = 0;
    for (size_t i = session->first; i < session->first + session->count; i++) {
        struct pg_op *op = &store->seats[i].op;
        if (op->stage == PG_STAGE_LOCK) {
            struct pg_entry *entry = &session->entries[session->entry_count++];
            entry->seat = i;
            entry->work = work_now(&store->seats[i]);
            memcpy(entry->nonce, op->request.nonce, NONCE_BYTES);
            op->stage = PG_STAGE_LOCKING;
        }
    }
}

static void add_work(struct pg_session *session, struct pg_sql *sql, enum pg_lock_work work) {
    struct pg_store *store = session->store;
    bool first = true;
    for (size_t i = 0; i < session->entry_count; i++) {
        const struct pg_name *name = &store->seats[session->entries[i].seat].name;
        if (session->entries[i].work != work) {
            continue;
        }
        if (work == PG_UNLOCK) {
            pg_sql_unlock(sql, name, i, first);
        } else {
            pg_sql_try(sql, &store->plan, name, i, first);
        }
        first = false;
    }
    if (!first) {
        pg_sql_end(sql);
    }
}

/* --pg-lock transaction: the lock lasts as long as the transaction, which is open only while there
 * is one. Reading the table in it would keep a lock on that for as long. */
static void add_transaction(struct pg_session *session, struct pg_sql *sql) {
    enum pg_lock_work work = session->entries[0].work;
    if (session->in_transaction && work == PG_UNLOCK) {
        pg_sql_add(sql, "SELECT 0 AS unlocked, true AS yes;ROLLBACK;");
    }
    if (!session->in_transaction || work == PG_UNLOCK) {
        pg_sql_add(sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;");
        pg_sql_settings(sql, &session->store->plan, true);
    }
    if (work == PG_TRY) {
        add_work(session, sql, PG_TRY);
    }
}

void pg_message_write(struct pg_session *session, struct pg_sql *sql) {
    struct pg_store *store = session->store;
    bool transaction = store->plan.options->transaction;
    bool rows = true;
    bool ends = false;
    unsigned char nonce[NONCE_BYTES];
    random_bytes(nonce, sizeof nonce);
    pg_nonce_text(nonce, session->nonce);
    if (transaction) {
        const struct pg_entry *entry = &session->entries[0];
        bool held = store->seats[entry->seat].grant.held;
        rows = entry->work == PG_LOOK && !held;
        ends = rows || entry->work == PG_UNLOCK;
        add_transaction(session, sql);
    } else {
        add_work(session, sql, PG_UNLOCK);
        add_work(session, sql, PG_TRY);
    }
    pg_sql_fact(sql, session->nonce);
    pg_sql_keys_begin(sql);
    for (size_t i = 0; i < session->entry_count; i++) {
        pg_sql_key(sql, &store->seats[session->entries[i].seat].name, i, i == 0);
    }
    pg_sql_keys_end(sql, &store->plan, session->place.database, rows);
    if (ends) {
        pg_sql_add(sql, "ROLLBACK");
    }
}
