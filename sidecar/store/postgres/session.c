#include "store/postgres/parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_NS (50 * NS_PER_MS)
#define CONFIG_PAUSE_NS NS_PER_S
#define DEAD_LEAST_NS NS_PER_S

static int64_t random_below(int64_t most_ns) {
    uint64_t number;
    random_bytes(&number, sizeof number);
    return (int64_t)(number % (uint64_t)(most_ns + 1));
}

static int64_t within(int64_t number, int64_t least, int64_t most) {
    return number < least ? least : number > most ? most : number;
}

/* After a loss everybody comes back at once: spread over a second, less for a short ttl. */
static int64_t spread_ns(const struct pg_session *session) {
    return random_below(within(session->store->setup.ttl_ns / 10, 50 * NS_PER_MS, NS_PER_S));
}

static int64_t backoff_ns(struct pg_session *session, enum pg_failure failure) {
    int64_t most_ns = within(session->store->setup.ttl_ns / 10, BACKOFF_FIRST_NS, 900 * NS_PER_MS);
    unsigned doublings = session->failures < 5 ? session->failures : 5;
    int64_t step_ns = within(BACKOFF_FIRST_NS << doublings, 0, most_ns);
    session->failures++;
    step_ns = step_ns / 2 + random_below(step_ns / 2);
    return failure == PG_FAILURE_CONFIG ? CONFIG_PAUSE_NS + step_ns : step_ns;
}

static bool holds_any(const struct pg_session *session) {
    for (size_t i = 0; i < session->count; i++) {
        if (session->store->seats[session->first + i].grant.held) {
            return true;
        }
    }
    return false;
}

/* Tells every election on it that its lock is gone. */
static void tell_lost(struct pg_session *session, const char *text) {
    struct pg_store *store = session->store;
    for (size_t i = session->first; i < session->first + session->count; i++) {
        struct store_event event = {.type = STORE_LOST, .election = i};
        if (!store->seats[i].grant.held || store->lives.closing) {
            continue;
        }
        store->seats[i].grant.held = false;
        event.reply.outcome = OUTCOME_NO;
        event.reply.reason = REASON_STORE_UNREACHABLE;
        event.reply.sent = clock_now();
        event.reply.expires_in_ns = -1;
        (void)snprintf(event.text, sizeof event.text, "%s", text);
        store->setup.on_event(store->setup.context, &event);
    }
}

static void doubt_all(struct pg_session *session, enum pg_failure failure, const char *text,
                      bool queued) {
    struct pg_store *store = session->store;
    enum election_reason reason =
        failure == PG_FAILURE_LOST ? REASON_STORE_UNREACHABLE : REASON_STORE_REFUSED;
    for (size_t i = session->first; i < session->first + session->count; i++) {
        enum pg_stage stage = store->seats[i].op.stage;
        if (stage != PG_STAGE_NONE && (queued || stage != PG_STAGE_LOCK) && !store->lives.closing) {
            pg_store_doubt(store, i, reason, text);
        }
    }
}

static void after_loss(struct pg_session *session, enum pg_failure failure, const char *text) {
    session->up = false;
    session->in_transaction = false;
    session->out_since_ns = 0;
    session->entry_count = 0;
    session->refused = failure != PG_FAILURE_LOST;
    pg_text(session->text, sizeof session->text, text);
    session->retry_ns = clock_now().boot_ns + (session->failures == 0 && failure == PG_FAILURE_LOST
                                                   ? spread_ns(session)
                                                   : backoff_ns(session, failure));
    pg_store_trouble(session->store, true, text);
    doubt_all(session, failure, text, false);
    pg_store_arm(session->store);
}

void pg_session_lose(struct pg_session *session, enum pg_failure failure, const char *text) {
    char kept[PG_TEXT];
    pg_text(kept, sizeof kept, text);
    tell_lost(session, kept);
    pg_link_drop(&session->link);
    after_loss(session, failure, kept);
}

static void on_down(void *context, enum pg_failure failure, const char *text) {
    struct pg_session *session = context;
    tell_lost(session, text);
    after_loss(session, failure, text);
}

static const char *find_yes(const PGresult *result, const char *column, size_t i) {
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", i);
    for (int row = 0; result != NULL && row < PQntuples(result); row++) {
        if (strcmp(pg_value(result, row, column), number) == 0) {
            const char *yes = pg_value(result, row, "yes");
            return yes[0] != '\0' ? yes : "null";
        }
    }
    return "";
}

static const char *yes_of(const struct pg_answers *answers, enum pg_lock_work work, size_t i) {
    if (work == PG_TRY) {
        return find_yes(pg_result(answers, "tried"), "tried", i);
    }
    return work == PG_UNLOCK ? find_yes(pg_result(answers, "unlocked"), "unlocked", i) : "";
}

/* NULL: the session is the one that it was, on the server that it was. */
static const char *check_fact(struct pg_session *session, const PGresult *fact) {
    bool fixed = !session->store->plan.options->transaction;
    for (size_t i = 0; i < session->entry_count; i++) {
        enum pg_lock_work work = session->entries[i].work;
        fixed = fixed || work == PG_PROBE;
    }
    if (fact == NULL || PQntuples(fact) != 1 ||
        strcmp(pg_value(fact, 0, "fact"), session->nonce) != 0) {
        return "a strange answer: not the one to what was asked";
    }
    const char *backend = pg_value(fact, 0, "backend");
    const char *identity = pg_value(fact, 0, "identity");
    if (!fixed) {
        pg_text(session->place.backend, sizeof session->place.backend, backend);
        pg_text(session->place.identity, sizeof session->place.identity, identity);
        session->place.pid = (int)strtol(backend, NULL, 10);
    }
    if (pg_is_true(pg_value(fact, 0, "recovery"))) {
        return "not-primary: the server is a standby in recovery";
    }
    if (strcmp(backend, session->place.backend) != 0) {
        return "pooler-detected: the session was put on another process of the server";
    }
    if (strcmp(identity, session->place.identity) != 0) {
        return "the server was promoted, or is another one";
    }
    session->standbys = strcmp(pg_value(fact, 0, "standbys"), "0") != 0;
    return NULL;
}

static void answer_failed(struct pg_session *session, const struct pg_answers *answers,
                          const struct pg_entry *entries, size_t count) {
    for (size_t i = 0; i < count && !session->store->lives.closing; i++) {
        pg_flow_lock_failed(session->store, &entries[i], yes_of(answers, entries[i].work, i),
                            answers);
    }
    if (session->store->plan.options->transaction && session->up) {
        pg_session_lose(session, answers->failure, answers->text);
    }
}

static void on_answered(void *context, const struct pg_answers *answers) {
    struct pg_session *session = context;
    struct pg_store *store = session->store;
    const PGresult *keys = pg_result(answers, "key");
    size_t count = session->entry_count;
    struct pg_entry *entries = memory_zeroed(count + 1, sizeof *entries);
    memcpy(entries, session->entries, count * sizeof *entries);
    session->out_since_ns = 0;
    if (answers->failed) {
        session->entry_count = 0;
        answer_failed(session, answers, entries, count);
    } else {
        const char *problem = check_fact(session, pg_result(answers, "fact"));
        session->entry_count = 0;
        if (problem == NULL && (keys == NULL || (size_t)PQntuples(keys) != count)) {
            problem = "a strange answer: not one row for each key";
        }
        if (problem != NULL) {
            pg_session_lose(session, PG_FAILURE_SERVER, problem);
        }
        session->in_transaction = PQtransactionStatus(session->link.conn) == PQTRANS_INTRANS;
        session->failures = 0;
        for (size_t row = 0; problem == NULL && row < count; row++) {
            size_t i = strtoul(pg_value(keys, (int)row, "key"), NULL, 10);
            if (i < count && session->up && !store->lives.closing) {
                pg_flow_locked(store, &entries[i], yes_of(answers, entries[i].work, i), keys,
                               (int)row);
            }
        }
    }
    free(entries);
    if (!store->lives.closing) {
        pg_session_pump(session);
        pg_rows_pump(store);
        pg_store_arm(store);
    }
}

/* The payload is anybody's, and only ever makes us ask. */
static void on_notified(void *context, const char *payload) {
    const struct pg_session *session = context;
    struct pg_store *store = session->store;
    size_t named = strcspn(payload, " ");
    const char *what = payload + named;
    for (size_t i = session->first; i < session->first + session->count; i++) {
        const char *key = store->seats[i].name.key.text;
        if (strlen(key) != named || strncmp(key, payload, named) != 0) {
            continue;
        }
        if (strcmp(what, " leaving") == 0 && !store->seats[i].grant.held) {
            pg_rows_warm(store, i);
        } else if (strcmp(what, " clean") == 0 || what[0] == '\0') {
            struct store_event event = {
                .type = STORE_WAKE, .election = i, .clean = what[0] != '\0'};
            store->setup.on_event(store->setup.context, &event);
        }
        return;
    }
}

static const struct pg_link_events link_events = {NULL, on_down, on_answered, on_notified};

static void on_gate_opened(void *context, const struct pg_place *place) {
    struct pg_session *session = context;
    struct pg_store *store = session->store;
    session->gating = false;
    session->up = true;
    session->refused = false;
    session->text[0] = '\0';
    session->place = *place;
    session->link.events = &link_events;
    session->link.context = session;
    if (store->connected_before) {
        store->setup.status->reconnects++;
    }
    store->connected_before = true;
    store->setup.status->up = true;
    log_event(LOG_INFO, "store-connected", LOG_TEXT("server", place->identity),
              LOG_NUMBER("backend", place->pid));
    pg_session_pump(session);
    pg_store_arm(store);
}

static void on_gate_failed(void *context, enum pg_failure failure, const char *text) {
    struct pg_session *session = context;
    session->gating = false;
    session->refused = failure != PG_FAILURE_LOST;
    pg_text(session->text, sizeof session->text, text);
    session->retry_ns = clock_now().boot_ns + backoff_ns(session, failure);
    pg_store_trouble(session->store, false, text);
    /* After silence a request goes on waiting: its own time is not over. */
    doubt_all(session, failure, session->text, !session->gate.silent);
    pg_store_arm(session->store);
}

void pg_session_pump(struct pg_session *session) {
    struct pg_store *store = session->store;
    bool wanted = false;
    for (size_t i = session->first; i < session->first + session->count; i++) {
        wanted = wanted || store->seats[i].op.stage == PG_STAGE_LOCK;
    }
    if (!session->up) {
        if (!session->gating && session->retry_ns == 0 && wanted) {
            session->gating = true;
            pg_gate_start(&session->gate);
        }
        return;
    }
    if (!wanted || session->out_since_ns != 0 || session->link.state != PG_LINK_READY) {
        return;
    }
    struct pg_sql sql = {0};
    pg_message_collect(session);
    pg_message_write(session, &sql);
    /* A send that fails shows on the socket at once. */
    session->out_since_ns = clock_now().boot_ns;
    bool sent = pg_link_send(&session->link, sql.text);
    free(sql.text);
    for (size_t i = 0; i < session->entry_count; i++) {
        struct pg_op *op = &store->seats[session->entries[i].seat].op;
        op->sent = op->sent.boot_ns == 0 ? session->link.sent : op->sent;
    }
    if (!sent) {
        session->out_since_ns = 1; /* expires at once, from the timer */
    }
}

/* How long a message may be out before the connection is given up. While a lock is held on it,
 * giving it up gives the lock up: not before no lease can run any more. */
static int64_t dead_ns(const struct pg_session *session) {
    int64_t ttl_ns = session->store->setup.ttl_ns;
    int64_t attempts_ns = within(ttl_ns / 3, DEAD_LEAST_NS, 4 * NS_PER_S);
    return holds_any(session) && ttl_ns > attempts_ns ? ttl_ns : attempts_ns;
}

int64_t pg_session_due_ns(const struct pg_session *session) {
    int64_t due_ns = NEVER_NS;
    if (session->up && session->out_since_ns != 0) {
        due_ns = session->out_since_ns + dead_ns(session);
    } else if (!session->up && session->retry_ns != 0) {
        due_ns = session->retry_ns;
    }
    return due_ns;
}

void pg_session_expire(struct pg_session *session, int64_t now_ns) {
    if (session->up && session->out_since_ns != 0 &&
        (session->out_since_ns == 1 || now_ns >= session->out_since_ns + dead_ns(session))) {
        pg_session_lose(session, PG_FAILURE_LOST, "no answer in time, the connection is given up");
    } else if (!session->up && session->retry_ns != 0 && now_ns >= session->retry_ns) {
        session->retry_ns = 0;
    }
}

void pg_session_init(struct pg_session *session, struct pg_store *store, size_t first,
                     size_t count) {
    session->store = store;
    session->first = first;
    session->count = count;
    session->entries = memory_zeroed(count, sizeof *session->entries);
    pg_route_init(&session->route, store->setup.loop, &store->lives, store->setup.url,
                  store->setup.identity);
    pg_link_init(&session->link, store->setup.loop, &store->lives, &link_events, session);
    session->gate.plan = &store->plan;
    session->gate.route = &session->route;
    session->gate.link = &session->link;
    session->gate.loop = store->setup.loop;
    session->gate.lives = &store->lives;
    session->gate.opened = on_gate_opened;
    session->gate.failed = on_gate_failed;
    session->gate.context = session;
    pg_gate_init(&session->gate);
}

void pg_session_close(struct pg_session *session) {
    pg_gate_close(&session->gate);
    pg_link_drop(&session->link);
}

void pg_session_finish(struct pg_session *session) {
    free(session->entries);
}
