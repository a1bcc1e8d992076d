#include "store/postgres/parts.h"

#include <stdlib.h>
#include <string.h>

/* What follows from the answers of the row connection. */

static uint64_t number_of(const char *text) {
    return strtoull(text, NULL, 10);
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

/* Of --pg-synchronous: a standby confirms what this statement wrote. */
static bool is_synchronous(const PGresult *written) {
    const char *commit = pg_value(written, 0, "commit");
    return pg_is_true(pg_value(written, 0, "standbys")) &&
           (strcmp(commit, "on") == 0 || strcmp(commit, "remote_apply") == 0);
}

static const char no_standby[] = "--pg-synchronous: synchronous_standby_names is empty, no standby "
                                 "confirms what is written";

/* Why the one statement changed nothing; the row was read after it. */
static const char *nothing_changed(const struct pg_answers *answers, const struct pg_seat *seat) {
    const PGresult *row = pg_result(answers, "row");
    const PGresult *standbys = pg_result(answers, "standbys");
    if (standbys != NULL && !is_synchronous(standbys)) {
        return no_standby;
    }
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
    bool wanted = store->plan.options->synchronous;
    if (!is_committed(answers)) {
        pg_op_give_up(&seat->op, why_not(answers));
    } else if (result == NULL || PQntuples(result) != 1) {
        pg_op_give_up(&seat->op, nothing_changed(answers, seat));
    } else if (wanted && !is_synchronous(result)) {
        pg_op_give_up(&seat->op, no_standby);
    } else {
        struct pg_grant *grant = &seat->grant;
        grant->minted = true;
        grant->synchronous = wanted;
        grant->token = number_of(pg_value(result, 0, "minted"));
        grant->doubt = doubt_of(pg_value(result, 0, "prior"));
        grant->prior = grant->doubt == DOUBT_NONE ? PRIOR_CLEAN : PRIOR_NONE;
        grant->longest_ttl_ns = pg_ttl_ns(pg_value(result, 0, "longest_ttl_ms"));
        grant->granted_ms = strtoll(pg_value(result, 0, "granted_ms"), NULL, 10);
        pg_flow_yes(store, i);
    }
}

static void raised(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[i];
    const PGresult *result = pg_result(answers, "raised");
    const PGresult *row = pg_result(answers, "row");
    char nonce[2 * NONCE_BYTES + 1];
    if (!is_committed(answers)) {
        doubted(store, i, answers);
        return;
    }
    if (result != NULL && PQntuples(result) == 1) {
        seat->grant.token = number_of(pg_value(result, 0, "raised"));
        seat->grant.synchronous = store->plan.options->synchronous && is_synchronous(result);
        if (seat->grant.synchronous == store->plan.options->synchronous) {
            pg_flow_yes(store, i);
        } else {
            pg_store_doubt(store, i, REASON_STORE_REFUSED, no_standby);
        }
        return;
    }
    pg_nonce_text(seat->op.request.nonce, nonce);
    const char *why = nothing_changed(answers, seat);
    if (row != NULL && strcmp(pg_value(row, 0, "nonce"), nonce) == 0) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED, why);
    } else {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, why);
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
    if (PQntuples(row) != 1 || !pg_seat_row_is_ours(&store->seats[i], pg_value(row, 0, "nonce"),
                                                    pg_value(row, 0, "token"))) {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, "the table has a later grant, or none");
        return;
    }
    if (!pg_is_true(pg_value(row, 0, "here")) || !pg_is_true(pg_value(row, 0, "held"))) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED,
                       "the second connection does not see the lock: two servers");
        return;
    }
    store->seats[i].grant.synchronous = work == PG_ROW_BEAT && is_synchronous(beat);
    if (work == PG_ROW_BEAT && !store->seats[i].grant.synchronous) {
        pg_store_doubt(store, i, REASON_STORE_REFUSED, no_standby);
        return;
    }
    pg_flow_yes(store, i);
}

void pg_flow_unmarked(struct pg_store *store, size_t i, const char *why) {
    struct pg_seat *seat = &store->seats[i];
    seat->unmarked = true;
    log_event(LOG_WARN, "no-clean-mark", LOG_TEXT("election", seat->name.name),
              LOG_TEXT("why", why));
}

static void marked(struct pg_store *store, size_t i, const struct pg_answers *answers) {
    struct pg_seat *seat = &store->seats[i];
    const PGresult *result = pg_result(answers, "marked");
    if (!is_committed(answers)) {
        pg_flow_unmarked(store, i, why_not(answers));
    } else if (result == NULL || PQntuples(result) != 1) {
        pg_flow_unmarked(store, i, "the table has a later grant, or it is another server's");
    }
    if (seat->grant.held) {
        pg_op_to_lock(&seat->op, PG_UNLOCK);
    } else if (answers->failed && answers->failure == PG_FAILURE_LOST) {
        doubted(store, i, answers); /* the mark may come with the next attempt */
    } else {
        pg_flow_no(store, i, REASON_RENEWAL_REFUSED, "");
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
    case PG_ROW_LEAVE:
        if (answers->failed && answers->failure == PG_FAILURE_LOST) {
            marked(store, i, answers);
        } else {
            pg_op_to_row(&store->seats[i].op, PG_ROW_MARK);
        }
        break;
    case PG_ROW_BEAT:
    case PG_ROW_READ:
        confirmed(store, i, work, answers);
        break;
    case PG_ROW_TELL: {
        /* Followers that hear nothing find out by themselves. */
        struct store_event event = pg_flow_event(store, i, OUTCOME_YES);
        event.reply.token = store->seats[i].op.request.token;
        pg_store_answer(store, i, &event);
        break;
    }
    }
}
