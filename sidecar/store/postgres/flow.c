#include "store/postgres/parts.h"

#include "base/clock.h"
#include "election/election.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A holder whose row is not there yet is a sidecar in the middle of its grant: not for so long. */
#define FOREIGN_AFTER_NS (2 * NS_PER_S)
#define TTL_MOST_MS 3600000

void pg_nonce_text(const unsigned char nonce[NONCE_BYTES], char text[2 * NONCE_BYTES + 1]) {
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", nonce[i]);
    }
}

static bool nonce_read(const char *text, unsigned char nonce[NONCE_BYTES]) {
    if (strlen(text) != (size_t)(2 * NONCE_BYTES) ||
        strspn(text, "0123456789abcdef") != (size_t)(2 * NONCE_BYTES)) {
        return false;
    }
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        nonce[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return true;
}

bool pg_same_nonce(const unsigned char *a, const unsigned char *b) {
    return memcmp(a, b, NONCE_BYTES) == 0;
}

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

int64_t pg_ttl_ns(const char *text) {
    uint64_t ms = number(text);
    return ms <= TTL_MOST_MS ? (int64_t)ms * NS_PER_MS : 0;
}

/* Only a standby that confirmed our own last write is more than asynchronous. */
static void tell_safety(const struct pg_store *store, size_t i, struct store_reply *reply) {
    const struct pg_grant *grant = &store->seats[i].grant;
    bool standbys = store->sessions[store->session_count > 1 ? i : 0].standbys;
    if (grant->held && grant->synchronous) {
        reply->safety = FAILOVER_SYNCHRONOUS;
        return;
    }
    if (standbys) {
        reply->warnings = WARNING_STORE_REPLICATED_ASYNC | WARNING_OVERLAP_POSSIBLE;
    }
    if (!store->plan.options->synchronous) {
        reply->safety = standbys ? FAILOVER_ASYNCHRONOUS : FAILOVER_NONE;
    }
}

/* An answer with what every reply has. */
struct store_event pg_flow_event(struct pg_store *store, size_t i, enum outcome outcome) {
    const struct pg_session *session = pg_session_of(store, i);
    const struct pg_op *op = &store->seats[i].op;
    struct store_event event = {.type = op->type, .election = i};
    event.reply.outcome = outcome;
    event.reply.sent = op->sent.boot_ns != 0 ? op->sent : op->called;
    event.reply.expires_in_ns = -1;
    pg_text(event.reply.server, sizeof event.reply.server, session->place.identity);
    tell_safety(store, i, &event.reply);
    return event;
}

void pg_flow_yes(struct pg_store *store, size_t i) {
    struct store_event event = pg_flow_event(store, i, OUTCOME_YES);
    const struct pg_grant *grant = &store->seats[i].grant;
    event.reply.token = grant->token;
    event.reply.longest_ttl_ns = grant->longest_ttl_ns;
    event.reply.prior = grant->prior;
    event.reply.doubt = grant->doubt;
    event.reply.held_since_ms = grant->granted_ms;
    pg_store_answer(store, i, &event);
}

void pg_flow_no(struct pg_store *store, size_t i, enum election_reason reason, const char *text) {
    struct store_event event = pg_flow_event(store, i, OUTCOME_NO);
    event.reply.reason = reason;
    (void)snprintf(event.text, sizeof event.text, "%s", text);
    pg_store_answer(store, i, &event);
}

void pg_op_to_lock(struct pg_op *op, enum pg_lock_work work) {
    op->stage = PG_STAGE_LOCK;
    op->lock_work = work;
}

void pg_op_to_row(struct pg_op *op, enum pg_row_work work) {
    op->stage = PG_STAGE_ROW;
    op->row_work = work;
}

/* The lock goes back before the request is answered: who could not get a token keeps nothing. */
void pg_op_give_up(struct pg_op *op, const char *text) {
    op->failing = true;
    pg_text(op->text, sizeof op->text, text);
    pg_op_to_lock(op, PG_UNLOCK);
}

void pg_flow_begin(struct pg_store *store, size_t i) {
    struct pg_seat *seat = &store->seats[i];
    struct pg_op *op = &seat->op;
    bool ours = seat->grant.held && pg_same_nonce(seat->grant.nonce, op->request.nonce);
    switch (op->type) {
    case STORE_ACQUIRED:
        pg_op_to_lock(op, ours                                    ? PG_PROBE
                          : !seat->grant.held && op->request.take ? PG_TRY
                                                                  : PG_LOOK);
        break;
    case STORE_RENEWED:
        pg_op_to_lock(op, ours ? PG_PROBE : PG_LOOK);
        break;
    case STORE_RELEASED:
        if (ours && !seat->unmarked && op->request.clean && op->request.token != 0 &&
            op->request.server[0] != '\0') {
            pg_op_to_row(op, PG_ROW_LEAVE);
        } else {
            pg_op_to_lock(op, ours ? PG_UNLOCK : PG_LOOK);
        }
        break;
    case STORE_WAKE:
    case STORE_LOST:
        break;
    }
}

static bool row_is_there(const PGresult *keys, int row) {
    return pg_value(keys, row, "nonce")[0] != '\0';
}

static bool row_names_us(const struct pg_seat *seat, const PGresult *keys, int row) {
    return strcmp(pg_value(keys, row, "namespace"), seat->name.namespace_) == 0 &&
           strcmp(pg_value(keys, row, "name"), seat->name.name) == 0;
}

static void collision(struct pg_store *store, size_t i, const char *namespace_, const char *name) {
    char text[PG_TEXT];
    (void)snprintf(text, sizeof text,
                   "its key %s is that of %.30s/%.60s in the table: another name or --pg-key",
                   store->seats[i].name.key.text, namespace_, name);
    pg_store_doubt(store, i, REASON_STORE_REFUSED, text);
}

/* Somebody holds the lock whom the row does not name. */
static void note_foreign(struct pg_store *store, size_t i, int pid, const char *application,
                         struct store_event *event) {
    struct pg_seat *seat = &store->seats[i];
    int64_t now_ns = clock_now().boot_ns;
    if (seat->foreign_pid != pid) {
        seat->foreign_pid = pid;
        seat->foreign_since_ns = now_ns;
    }
    if (now_ns - seat->foreign_since_ns < FOREIGN_AFTER_NS) {
        return;
    }
    event->reply.reason = REASON_FOREIGN_VALUE;
    (void)snprintf(event->reply.holder, sizeof event->reply.holder, "session-%d", pid);
    (void)snprintf(event->text, sizeof event->text,
                   "lock %s is held by process %d (%.16s), no sidecar of this election: SELECT "
                   "pg_terminate_backend(%d)",
                   seat->name.key.text, pid, application[0] != '\0' ? application : "unknown", pid);
}

/* What a follower is told: who holds the lock, and what the record knows. */
static void tell_holder(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[i];
    struct store_event event = pg_flow_event(store, i, OUTCOME_NO);
    struct store_reply *reply = &event.reply;
    int pid = (int)strtol(pg_value(keys, row, "other"), NULL, 10);
    reply->reason = REASON_HELD_BY_OTHER;
    reply->held = pid > 0 || seat->grant.held;
    if (row_is_there(keys, row)) {
        reply->token = number(pg_value(keys, row, "token"));
        reply->longest_ttl_ns = pg_ttl_ns(pg_value(keys, row, "longest_ttl_ms"));
    }
    if (seat->grant.held) {
        /* An earlier request of ours got it after its time was over. */
        reply->holder_nonce_known = true;
        memcpy(reply->holder_nonce, seat->grant.nonce, NONCE_BYTES);
        pg_text(reply->holder, sizeof reply->holder, store->setup.identity);
        reply->held_since_ms = seat->grant.granted_ms;
    } else if (pid > 0 && (int)strtol(pg_value(keys, row, "backend"), NULL, 10) == pid) {
        seat->foreign_pid = 0;
        reply->holder_nonce_known = nonce_read(pg_value(keys, row, "nonce"), reply->holder_nonce);
        pg_text(reply->holder, sizeof reply->holder, pg_value(keys, row, "holder"));
        reply->held_since_ms = strtoll(pg_value(keys, row, "granted_ms"), NULL, 10);
    } else if (pid > 0) {
        note_foreign(store, i, pid, pg_value(keys, row, "application"), &event);
    } else {
        seat->foreign_pid = 0;
    }
    if (seat->op.type == STORE_RENEWED) {
        reply->reason = REASON_RENEWAL_REFUSED;
    }
    pg_store_answer(store, i, &event);
}

/* A try that said yes: only the lock's own row in pg_locks makes it one. NULL with that row: it was
 * held already, by an attempt whose answer was an error. */
static void tried(struct pg_store *store, const struct pg_entry *entry, const char *yes, bool own) {
    struct pg_seat *seat = &store->seats[entry->seat];
    memset(&seat->grant, 0, sizeof seat->grant);
    seat->unmarked = false;
    seat->grant.held = own && strcmp(yes, "f") != 0;
    memcpy(seat->grant.nonce, entry->nonce, NONCE_BYTES);
}

/* Whether the row is still of this grant; in the lock's own transaction it is not read. */
bool pg_seat_row_is_ours(const struct pg_seat *seat, const char *nonce, const char *token) {
    char own[2 * NONCE_BYTES + 1];
    pg_nonce_text(seat->grant.nonce, own);
    return strcmp(nonce, own) == 0 && number(token) == seat->grant.token;
}

static void probed(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[i];
    bool transaction = store->plan.options->transaction;
    if (!transaction && seat->grant.minted &&
        !pg_seat_row_is_ours(seat, pg_value(keys, row, "nonce"), pg_value(keys, row, "token"))) {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, "the table has a later grant, or none");
    } else if (!seat->grant.minted) {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, "the lock has no token");
    } else if (seat->op.type == STORE_RENEWED && seat->op.request.raise_token) {
        pg_op_to_row(&seat->op, PG_ROW_RAISE);
    } else if (store->plan.options->synchronous) {
        pg_op_to_row(&seat->op, PG_ROW_BEAT);
    } else if (transaction) {
        pg_op_to_row(&seat->op, PG_ROW_READ);
    } else {
        pg_flow_yes(store, i);
    }
}

static void acquired(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                     const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[entry->seat];
    struct pg_op *op = &seat->op;
    if (entry->work == PG_TRY && strcmp(yes, "f") == 0) {
        if (store->plan.options->transaction) {
            pg_op_to_lock(op, PG_LOOK); /* the row is read before the transaction ends */
        } else {
            tell_holder(store, entry->seat, keys, row);
        }
    } else if (entry->work == PG_TRY && !seat->grant.held) {
        pg_session_lose(pg_session_of(store, entry->seat), PG_FAILURE_OTHER,
                        "the lock was said to be given, and pg_locks does not have it");
    } else if (entry->work == PG_LOOK) {
        tell_holder(store, entry->seat, keys, row);
    } else if (seat->grant.minted) {
        probed(store, entry->seat, keys, row); /* a retry is worth no more than a probe */
    } else {
        pg_op_to_row(op, PG_ROW_MINT);
    }
}

static void unlocked(struct pg_store *store, size_t i, bool good) {
    struct pg_op *op = &store->seats[i].op;
    if (!good) {
        pg_session_lose(pg_session_of(store, i), PG_FAILURE_OTHER,
                        "a lock was given back, and is still there");
    } else if (op->failing) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED, op->text);
    } else {
        pg_op_to_row(op, PG_ROW_TELL);
    }
}

static void released_look(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_op *op = &store->seats[i].op;
    char nonce[2 * NONCE_BYTES + 1];
    pg_nonce_text(op->request.nonce, nonce);
    bool ours = strcmp(nonce, pg_value(keys, row, "nonce")) == 0;
    if (ours && op->request.clean && op->request.token != 0) {
        pg_op_to_row(op,
                     PG_ROW_MARK); /* the lock went with its connection, the mark is still true */
    } else {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, "");
    }
}

void pg_flow_locked(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                    const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[entry->seat];
    bool own = strcmp(pg_value(keys, row, "own"), "1") == 0;
    bool live = seat->op.stage == PG_STAGE_LOCKING;
    if (entry->work == PG_TRY) {
        tried(store, entry, yes, own);
    } else if (!own &&
               (entry->work == PG_PROBE || (entry->work == PG_UNLOCK && strcmp(yes, "t") == 0))) {
        seat->grant.held = false;
    }
    if (!live) {
        return;
    }
    if (entry->work == PG_UNLOCK) {
        unlocked(store, entry->seat, !seat->grant.held);
    } else if (row_is_there(keys, row) && !row_names_us(seat, keys, row)) {
        if (seat->grant.held) {
            pg_op_give_up(&seat->op, "its key is another election's in the table: change --pg-key");
        } else {
            collision(store, entry->seat, pg_value(keys, row, "namespace"),
                      pg_value(keys, row, "name"));
        }
    } else if (entry->work == PG_PROBE && !own) {
        pg_flow_no(store, entry->seat, REASON_RENEWAL_REFUSED, "the lock is gone");
    } else if (seat->op.type == STORE_ACQUIRED) {
        acquired(store, entry, yes, keys, row);
    } else if (seat->op.type == STORE_RELEASED) {
        released_look(store, entry->seat, keys, row);
    } else if (entry->work == PG_PROBE) {
        probed(store, entry->seat, keys, row);
    } else {
        tell_holder(store, entry->seat, keys, row);
    }
}

void pg_flow_lock_failed(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                         const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[entry->seat];
    bool live = seat->op.stage == PG_STAGE_LOCKING;
    enum election_reason reason =
        answers->failure == PG_FAILURE_LOST ? REASON_STORE_UNREACHABLE : REASON_STORE_REFUSED;
    if (entry->work == PG_TRY && strcmp(yes, "t") == 0) {
        tried(store, entry, yes, true); /* it may be held: it is given back */
        if (live) {
            pg_op_give_up(&seat->op, answers->text);
            return;
        }
    }
    if (entry->work == PG_UNLOCK && strcmp(yes, "t") == 0) {
        seat->grant.held = false;
    }
    if (live) {
        pg_store_doubt(store, entry->seat, reason,
                       seat->op.failing ? seat->op.text : answers->text);
    }
}
