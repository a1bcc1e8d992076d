#include "store/postgres/parts.h"

#include "base/clock.h"
#include "election/election.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A holder whose row is not there yet is a sidecar in the middle of its grant: not for so long. */
#define FOREIGN_AFTER_NS (2 * NS_PER_S)

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

static bool same_nonce(const unsigned char *a, const unsigned char *b) {
    return memcmp(a, b, NONCE_BYTES) == 0;
}

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

/* An answer with what every reply has. */
static struct store_event event_of(struct pg_store *store, size_t i, enum outcome outcome) {
    const struct pg_session *session = pg_session_of(store, i);
    const struct pg_op *op = &store->seats[i].op;
    struct store_event event = {.type = op->type, .election = i};
    event.reply.outcome = outcome;
    event.reply.sent = op->sent.boot_ns != 0 ? op->sent : op->called;
    event.reply.expires_in_ns = -1;
    pg_text(event.reply.server, sizeof event.reply.server, session->place.identity);
    bool covered = store->plan.options->synchronous;
    event.reply.warnings = session->standbys && !covered ? WARNING_STORE_REPLICATED_ASYNC : 0;
    return event;
}

static void answer_yes(struct pg_store *store, size_t i) {
    struct store_event event = event_of(store, i, OUTCOME_YES);
    const struct pg_grant *grant = &store->seats[i].grant;
    event.reply.token = grant->token;
    event.reply.longest_ttl_ns = grant->longest_ttl_ns;
    event.reply.prior = grant->prior;
    event.reply.doubt = grant->doubt;
    pg_store_answer(store, i, &event);
}

static void answer_no(struct pg_store *store, size_t i, enum election_reason reason,
                      const char *text) {
    struct store_event event = event_of(store, i, OUTCOME_NO);
    event.reply.reason = reason;
    (void)snprintf(event.text, sizeof event.text, "%s", text);
    pg_store_answer(store, i, &event);
}

static void to_lock(struct pg_op *op, enum pg_lock_work work) {
    op->stage = PG_STAGE_LOCK;
    op->lock_work = work;
}

static void to_row(struct pg_op *op, enum pg_row_work work) {
    op->stage = PG_STAGE_ROW;
    op->row_work = work;
}

/* The lock goes back before the request is answered: who could not get a token keeps nothing. */
static void give_up(struct pg_op *op, const char *text) {
    op->failing = true;
    pg_text(op->text, sizeof op->text, text);
    to_lock(op, PG_UNLOCK);
}

void pg_flow_begin(struct pg_store *store, size_t i) {
    struct pg_seat *seat = &store->seats[i];
    struct pg_op *op = &seat->op;
    bool ours = seat->grant.held && same_nonce(seat->grant.nonce, op->request.nonce);
    switch (op->type) {
    case STORE_ACQUIRED:
        to_lock(op, ours ? PG_PROBE : !seat->grant.held && op->request.take ? PG_TRY : PG_LOOK);
        break;
    case STORE_RENEWED:
        to_lock(op, ours ? PG_PROBE : PG_LOOK);
        break;
    case STORE_RELEASED:
        if (ours && op->request.clean && op->request.token != 0 && op->request.server[0] != '\0') {
            to_row(op, PG_ROW_MARK);
        } else {
            to_lock(op, ours ? PG_UNLOCK : PG_LOOK);
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
                   "the lock %s is held by process %d (%.40s), which is no sidecar of this "
                   "election: end it, or SELECT pg_terminate_backend(%d)",
                   seat->name.key.text, pid, application[0] != '\0' ? application : "unknown", pid);
}

/* What a follower is told: who holds the lock, and what the record knows. */
static void tell_holder(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[i];
    struct store_event event = event_of(store, i, OUTCOME_NO);
    struct store_reply *reply = &event.reply;
    int pid = (int)strtol(pg_value(keys, row, "other"), NULL, 10);
    reply->reason = REASON_HELD_BY_OTHER;
    reply->held = pid > 0 || seat->grant.held;
    if (row_is_there(keys, row)) {
        reply->token = number(pg_value(keys, row, "token"));
        reply->longest_ttl_ns = (int64_t)number(pg_value(keys, row, "longest_ttl_ms")) * NS_PER_MS;
    }
    if (seat->grant.held) {
        /* An earlier request of ours got it after its time was over. */
        reply->holder_nonce_known = true;
        memcpy(reply->holder_nonce, seat->grant.nonce, NONCE_BYTES);
        pg_text(reply->holder, sizeof reply->holder, store->setup.identity);
    } else if (pid > 0 && (int)strtol(pg_value(keys, row, "backend"), NULL, 10) == pid) {
        seat->foreign_pid = 0;
        reply->holder_nonce_known = nonce_read(pg_value(keys, row, "nonce"), reply->holder_nonce);
        pg_text(reply->holder, sizeof reply->holder, pg_value(keys, row, "holder"));
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

/* A try that said yes: only the lock's own row in pg_locks makes it one. */
static void tried(struct pg_store *store, const struct pg_entry *entry, const char *yes, bool own) {
    struct pg_seat *seat = &store->seats[entry->seat];
    memset(&seat->grant, 0, sizeof seat->grant);
    seat->grant.held = strcmp(yes, "t") == 0 && own;
    memcpy(seat->grant.nonce, entry->nonce, NONCE_BYTES);
}

static void acquired(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                     const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[entry->seat];
    struct pg_op *op = &seat->op;
    if (entry->work == PG_TRY && strcmp(yes, "f") == 0) {
        if (store->plan.options->transaction) {
            to_lock(op, PG_LOOK); /* the row is read before the transaction ends */
        } else {
            tell_holder(store, entry->seat, keys, row);
        }
    } else if (entry->work == PG_TRY && !seat->grant.held) {
        pg_session_lose(pg_session_of(store, entry->seat), PG_FAILURE_OTHER,
                        "the lock was said to be given, and pg_locks does not have it");
    } else if (entry->work == PG_LOOK) {
        tell_holder(store, entry->seat, keys, row);
    } else if (seat->grant.minted) {
        answer_yes(store, entry->seat);
    } else {
        to_row(op, PG_ROW_MINT);
    }
}

/* Whether the row is still of this grant; in the lock's own transaction it is not read. */
static bool row_is_ours(const struct pg_store *store, const struct pg_seat *seat, const char *nonce,
                        const char *token) {
    char own[2 * NONCE_BYTES + 1];
    (void)store;
    pg_nonce_text(seat->grant.nonce, own);
    return strcmp(nonce, own) == 0 && number(token) == seat->grant.token;
}

static void probed(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[i];
    bool transaction = store->plan.options->transaction;
    if (!transaction && seat->grant.minted &&
        !row_is_ours(store, seat, pg_value(keys, row, "nonce"), pg_value(keys, row, "token"))) {
        answer_no(store, i, REASON_RENEWAL_REFUSED, "the table has a later grant, or none");
    } else if (!seat->grant.minted) {
        answer_no(store, i, REASON_RENEWAL_REFUSED, "the lock has no token");
    } else if (seat->op.request.raise_token) {
        to_row(&seat->op, PG_ROW_RAISE);
    } else if (store->plan.options->synchronous) {
        to_row(&seat->op, PG_ROW_BEAT);
    } else if (transaction) {
        to_row(&seat->op, PG_ROW_READ);
    } else {
        answer_yes(store, i);
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
        to_row(op, PG_ROW_TELL);
    }
}

static void released_look(struct pg_store *store, size_t i, const PGresult *keys, int row) {
    struct pg_op *op = &store->seats[i].op;
    char nonce[2 * NONCE_BYTES + 1];
    pg_nonce_text(op->request.nonce, nonce);
    bool ours = strcmp(nonce, pg_value(keys, row, "nonce")) == 0;
    if (ours && op->request.clean && op->request.token != 0) {
        to_row(op, PG_ROW_MARK); /* the lock went with its connection, the mark is still true */
    } else {
        answer_no(store, i, REASON_RENEWAL_REFUSED, "");
    }
}

void pg_flow_locked(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                    const PGresult *keys, int row) {
    struct pg_seat *seat = &store->seats[entry->seat];
    bool own = strcmp(pg_value(keys, row, "own"), "1") == 0;
    bool live = seat->op.stage == PG_STAGE_LOCKING;
    if (entry->work == PG_TRY) {
        tried(store, entry, yes, own);
    } else if (entry->work == PG_UNLOCK && strcmp(yes, "t") == 0 && !own) {
        seat->grant.held = false;
    } else if (entry->work == PG_PROBE && !own) {
        seat->grant.held = false;
    }
    if (!live) {
        return;
    }
    if (entry->work == PG_UNLOCK) {
        unlocked(store, entry->seat, !seat->grant.held);
    } else if (row_is_there(keys, row) && !row_names_us(seat, keys, row)) {
        if (seat->grant.held) {
            give_up(&seat->op, "its key is another election's in the table: change --pg-key");
        } else {
            collision(store, entry->seat, pg_value(keys, row, "namespace"),
                      pg_value(keys, row, "name"));
        }
    } else if (entry->work == PG_PROBE && !own) {
        answer_no(store, entry->seat, REASON_RENEWAL_REFUSED, "the lock is gone");
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
            give_up(&seat->op, answers->text);
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

static enum prior_doubt doubt_of(const char *prior) {
    static const struct {
        const char *name;
        enum prior_doubt doubt;
    } doubts[] = {{"clean", DOUBT_NONE},
                  {"other-server", DOUBT_OTHER_SERVER},
                  {"token-behind", DOUBT_TOKEN_BEHIND},
                  {"unclean", DOUBT_UNCLEAN}};
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        if (strcmp(doubts[i].name, prior) == 0) {
            return doubts[i].doubt;
        }
    }
    return DOUBT_NO_RECORD;
}

/* Why the one statement changed nothing; the row was read after it. */
static const char *nothing_changed(const PGresult *row, bool *ours, const struct pg_seat *seat) {
    char nonce[2 * NONCE_BYTES + 1];
    pg_nonce_text(seat->op.request.nonce, nonce);
    *ours = row != NULL && strcmp(pg_value(row, 0, "nonce"), nonce) == 0;
    if (row != NULL && PQntuples(row) == 1) {
        if (strcmp(pg_value(row, 0, "row"), seat->name.namespace_) != 0 ||
            strcmp(pg_value(row, 0, "name"), seat->name.name) != 0) {
            return "its key is another election's in the table: give one of them a --pg-key";
        }
        if (!pg_is_true(pg_value(row, 0, "here")) || !pg_is_true(pg_value(row, 0, "held"))) {
            return "the second connection does not see the lock: two servers, or it is gone";
        }
    }
    return "no token: it would be above 10^14, or the lock is not seen by the second connection";
}

static bool is_committed(const struct pg_answers *answers) {
    const PGresult *last = answers->count > 0 ? answers->list[answers->count - 1] : NULL;
    /* PQcmdStatus does not change what it reads. */
    return !answers->failed && !answers->warned && last != NULL &&
           strcmp(PQcmdStatus((PGresult *)(uintptr_t)last), "COMMIT") == 0;
}

static const char *why_not(const struct pg_answers *answers) {
    if (answers->failed) {
        return answers->text;
    }
    return answers->warned ? "committed, but perhaps not on a synchronous standby" : "no commit";
}

static void doubted(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    bool lost = answers->failed && answers->failure == PG_FAILURE_LOST;
    pg_store_doubt(store, i, lost ? REASON_STORE_UNREACHABLE : REASON_STORE_REFUSED,
                   why_not(answers));
}

static void minted(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[i];
    const PGresult *result = pg_result(answers, "minted");
    bool ours;
    if (!is_committed(answers)) {
        give_up(&seat->op, why_not(answers));
    } else if (result == NULL || PQntuples(result) != 1) {
        give_up(&seat->op, nothing_changed(pg_result(answers, "row"), &ours, seat));
    } else {
        struct pg_grant *grant = &seat->grant;
        grant->minted = true;
        grant->token = number(pg_value(result, 0, "minted"));
        grant->doubt = doubt_of(pg_value(result, 0, "prior"));
        grant->prior = grant->doubt == DOUBT_NONE ? PRIOR_CLEAN : PRIOR_NONE;
        grant->longest_ttl_ns = (int64_t)number(pg_value(result, 0, "longest_ttl_ms")) * NS_PER_MS;
        answer_yes(store, i);
    }
}

static void raised(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[i];
    const PGresult *result = pg_result(answers, "raised");
    bool ours;
    if (!is_committed(answers)) {
        doubted(store, i, answers);
    } else if (result != NULL && PQntuples(result) == 1) {
        seat->grant.token = number(pg_value(result, 0, "raised"));
        answer_yes(store, i);
    } else {
        const char *why = nothing_changed(pg_result(answers, "row"), &ours, seat);
        if (ours) {
            pg_store_doubt(store, i, REASON_STORE_REFUSED, why);
        } else {
            answer_no(store, i, REASON_RENEWAL_REFUSED, why);
        }
    }
}

/* A probe that read the row, or wrote it. */
static void confirmed(struct pg_store *store, size_t i, enum pg_row_work work,
                      const struct pg_answers *answers) {
    const PGresult *row = pg_result(answers, "row");
    const PGresult *beat = pg_result(answers, "beaten");
    if (!is_committed(answers) || row == NULL) {
        doubted(store, i, answers);
        return;
    }
    if (PQntuples(row) != 1 || !row_is_ours(store, &store->seats[i], pg_value(row, 0, "nonce"),
                                            pg_value(row, 0, "token"))) {
        answer_no(store, i, REASON_RENEWAL_REFUSED, "the table has a later grant, or none");
        return;
    }
    if (!pg_is_true(pg_value(row, 0, "here")) || !pg_is_true(pg_value(row, 0, "held"))) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED,
                       "the second connection does not see the lock: two servers");
        return;
    }
    const char *commit = work == PG_ROW_BEAT ? pg_value(beat, 0, "commit") : "";
    bool synchronous = work == PG_ROW_BEAT && beat != NULL &&
                       pg_is_true(pg_value(beat, 0, "beaten")) &&
                       (strcmp(commit, "on") == 0 || strcmp(commit, "remote_apply") == 0);
    if (work == PG_ROW_BEAT && !synchronous) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED,
                       "--pg-synchronous: synchronous_standby_names is empty, no standby "
                       "confirms what is written");
        return;
    }
    answer_yes(store, i);
}

static void marked(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[i];
    if (answers->failed && answers->failure == PG_FAILURE_LOST) {
        doubted(store, i, answers); /* the mark may come with the next attempt */
    } else if (seat->grant.held) {
        to_lock(&seat->op, PG_UNLOCK);
    } else {
        answer_no(store, i, REASON_RENEWAL_REFUSED, "");
    }
}

void pg_flow_rowed(struct pg_store *store, size_t i, enum pg_row_work work,
                   const struct pg_answers *answers) {
    switch (work) {
    case PG_ROW_MINT:
        minted(store, i, answers);
        break;
    case PG_ROW_RAISE:
        raised(store, i, answers);
        break;
    case PG_ROW_MARK:
        marked(store, i, answers);
        break;
    case PG_ROW_BEAT:
    case PG_ROW_READ:
        confirmed(store, i, work, answers);
        break;
    case PG_ROW_TELL: {
        /* Followers that hear nothing find out by themselves. */
        struct store_event event = event_of(store, i, OUTCOME_YES);
        event.reply.token = store->seats[i].op.request.token;
        pg_store_answer(store, i, &event);
        break;
    }
    }
}
