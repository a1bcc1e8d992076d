#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/memory.h"
#include "store/postgres/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS (250 * NS_PER_MS)
#define LOG_EVERY_MS 10000
#define LOST_EVERY_MS 100
/* A timer that comes later than this was held up, and so were the answers. */
#define LATE_NS (20 * NS_PER_MS)

static struct pg_store *of(struct store *store) {
    return (struct pg_store *)store; /* its first member */
}

struct pg_session *pg_session_of(struct pg_store *store, size_t seat) {
    return &store->sessions[store->session_count > 1 ? seat : 0];
}

static void set_problem(struct pg_store *store, size_t election, const char *text) {
    store->troubled = election;
    pg_text(store->setup.status->problem, sizeof store->setup.status->problem, text);
}

void pg_store_trouble(struct pg_store *store, bool lost, const char *text) {
    uint64_t suppressed = 0;
    struct log_limit *limit = lost ? &store->lost_limit : &store->failed_limit;
    store->setup.status->up = false;
    set_problem(store, store->setup.election_count, text);
    if (log_allow(limit, lost ? LOST_EVERY_MS : LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_WARN, lost ? "store-connection-lost" : "store-connect-failed",
                  LOG_TEXT("why", text), LOG_NUMBER("suppressed", suppressed));
    }
}

void pg_store_answer(struct pg_store *store, size_t seat, const struct store_event *event) {
    struct store_event copy = *event;
    store->seats[seat].op.stage = PG_STAGE_NONE;
    store->setup.status->up = true;
    if (event->text[0] != '\0' && event->reply.reason == REASON_FOREIGN_VALUE) {
        set_problem(store, seat, event->text);
    } else if (store->troubled == seat || store->troubled == store->setup.election_count) {
        store->setup.status->problem[0] = '\0';
    }
    store->setup.on_event(store->setup.context, &copy);
}

void pg_store_doubt(struct pg_store *store, size_t seat, enum election_reason reason,
                    const char *text) {
    struct pg_op *op = &store->seats[seat].op;
    struct store_event event = {.type = op->type, .election = seat};
    event.reply.outcome = OUTCOME_UNSURE;
    event.reply.reason = reason;
    event.reply.sent = op->sent;
    event.reply.expires_in_ns = -1;
    (void)snprintf(event.text, sizeof event.text, "%s", text);
    op->stage = PG_STAGE_NONE;
    /* A refusal is an answer: it is one election's trouble, not the store's. */
    store->setup.status->up = reason == REASON_STORE_REFUSED && pg_session_of(store, seat)->up;
    set_problem(store, reason == REASON_STORE_REFUSED ? seat : store->setup.election_count, text);
    store->setup.on_event(store->setup.context, &event);
}

/* What is known of why a request got no answer. */
static const char *why_late(const struct pg_store *store, const struct pg_op *op,
                            const struct pg_session *session) {
    if (!session->up && session->text[0] != '\0') {
        return session->text;
    }
    bool row = op->stage == PG_STAGE_ROW && store->rows.text[0] != '\0';
    return row ? store->rows.text : "no answer in time";
}

static void expire_ops(struct pg_store *store, int64_t now_ns) {
    for (size_t i = 0; i < store->setup.election_count && !store->lives.closing; i++) {
        struct pg_op *op = &store->seats[i].op;
        const struct pg_session *session = pg_session_of(store, i);
        if (op->stage == PG_STAGE_NONE || op->deadline_ns > now_ns) {
            continue;
        }
        bool refused = !session->up && session->text[0] != '\0' && session->refused;
        bool in_row = op->stage == PG_STAGE_ROW || op->stage == PG_STAGE_ROWING;
        bool told = in_row && op->row_work == PG_ROW_TELL;
        char text[PG_TEXT];
        pg_text(text, sizeof text, why_late(store, op, session));
        pg_rows_abandon(store, i);
        if (in_row && op->row_work == PG_ROW_MARK) {
            pg_flow_unmarked(store, i, text);
        }
        if (told) {
            struct pg_answers none = {.failed = true};
            pg_flow_rowed(store, i, PG_ROW_TELL, &none); /* the lock is back, that is a yes */
        } else if (op->failing) {
            pg_store_doubt(store, i, REASON_STORE_REFUSED, op->text);
        } else {
            pg_store_doubt(store, i, refused ? REASON_STORE_REFUSED : REASON_STORE_UNREACHABLE,
                           text);
        }
    }
}

static int64_t earliest(const struct pg_store *store) {
    int64_t at_ns = pg_rows_due_ns(store);
    for (size_t i = 0; i < store->session_count; i++) {
        int64_t due_ns = pg_session_due_ns(&store->sessions[i]);
        at_ns = due_ns < at_ns ? due_ns : at_ns;
    }
    for (size_t i = 0; i < store->setup.election_count; i++) {
        const struct pg_op *op = &store->seats[i].op;
        if (op->stage != PG_STAGE_NONE && op->deadline_ns < at_ns) {
            at_ns = op->deadline_ns;
        }
    }
    return at_ns;
}

static void pump_all(struct pg_store *store) {
    for (size_t i = 0; i < store->session_count && !store->lives.closing; i++) {
        pg_session_pump(&store->sessions[i]);
    }
    pg_rows_pump(store);
}

static void on_timer(uv_timer_t *timer) {
    struct pg_store *store = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    int64_t due_ns = earliest(store);
    if (!store->late && due_ns > 1 && due_ns <= now_ns - LATE_NS) {
        store->late = true;
        (void)uv_timer_start(&store->timer, on_timer, 1, 0);
        return;
    }
    store->late = false;
    store->kicked = false;
    expire_ops(store, now_ns);
    for (size_t i = 0; i < store->session_count && !store->lives.closing; i++) {
        pg_session_expire(&store->sessions[i], now_ns);
    }
    if (!store->lives.closing) {
        pg_rows_expire(store, now_ns);
    }
    pump_all(store);
    pg_store_arm(store);
}

static void arm_in(struct pg_store *store, uint64_t ms) {
    uv_update_time(store->setup.loop);
    (void)uv_timer_start(&store->timer, on_timer, ms, 0);
}

void pg_store_arm(struct pg_store *store) {
    if (store->lives.closing) {
        return;
    }
    int64_t at_ns = store->kicked ? 0 : earliest(store);
    if (at_ns == NEVER_NS) {
        (void)uv_timer_stop(&store->timer);
        return;
    }
    int64_t left_ns = at_ns - clock_now().boot_ns;
    arm_in(store, left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
}

static void submit(struct store *base, enum store_event_type type,
                   const struct store_request *request) {
    struct pg_store *store = of(base);
    struct pg_op *op = &store->seats[request->election].op;
    if (op->stage != PG_STAGE_NONE) {
        abort(); /* two requests at a time for one election: against the contract */
    }
    memset(op, 0, sizeof *op);
    op->type = type;
    op->request = *request;
    op->called = clock_now();
    op->deadline_ns = op->called.boot_ns + request->timeout_ns;
    pg_flow_begin(store, request->election);
    store->kicked = true;
    pg_store_arm(store); /* from the loop, together with what else is asked for in this turn */
}

static void postgres_acquire(struct store *store, const struct store_request *request) {
    submit(store, STORE_ACQUIRED, request);
}

static void postgres_renew(struct store *store, const struct store_request *request) {
    submit(store, STORE_RENEWED, request);
}

static void postgres_release(struct store *store, const struct store_request *request) {
    submit(store, STORE_RELEASED, request);
}

static void postgres_lock_space(const struct store *base, size_t election, char *text,
                                size_t size) {
    const struct pg_store *store = (const struct pg_store *)base;
    const struct pg_session *session = &store->sessions[store->session_count > 1 ? election : 0];
    const char *schema = store->plan.options->schema;
    if (size == 0) {
        return;
    }
    text[0] = '\0';
    size_t cluster = strcspn(session->place.identity, "/");
    if (cluster > 0) {
        (void)snprintf(text, size, "%.*s/%s/%s@%s", (int)cluster, session->place.identity,
                       session->place.database, store->seats[election].name.key.text,
                       schema != NULL ? schema : "public");
    }
}

static void on_empty(void *context) {
    struct pg_store *store = context;
    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;
    for (size_t i = 0; i < store->session_count; i++) {
        pg_session_finish(&store->sessions[i]);
    }
    pg_plan_finish(&store->plan);
    free(store->sessions);
    free(store->seats);
    free(store);
    closed(closed_context);
}

static void on_timer_closed(uv_handle_t *handle) {
    struct pg_store *store = handle->data;
    store_lives_end(&store->lives);
}

static void postgres_close(struct store *base, void (*closed)(void *context), void *context) {
    struct pg_store *store = of(base);
    store->closed = closed;
    store->closed_context = context;
    store->lives.closing = true;
    for (size_t i = 0; i < store->session_count; i++) {
        pg_session_close(&store->sessions[i]);
    }
    pg_link_drop(&store->rows.link);
    uv_close((uv_handle_t *)&store->timer, on_timer_closed);
}

static struct store *postgres_open(const struct store_setup *setup, struct error *error) {
    if (!pg_target_check(setup->url, error)) {
        return NULL;
    }
    struct pg_store *store = memory_zeroed(1, sizeof *store);
    store->base.ops = &postgres_store_ops;
    store->setup = *setup;
    store->troubled = setup->election_count;
    store->lives.empty = on_empty;
    store->lives.context = store;
    pg_plan_init(&store->plan, &store->setup);
    store->seats = memory_zeroed(setup->election_count, sizeof *store->seats);
    const struct store_pg_key *form = setup->postgres != NULL ? &setup->postgres->key : NULL;
    for (size_t i = 0; i < setup->election_count; i++) {
        store->seats[i].name =
            (struct pg_name){.key = pg_key_make(form, setup->namespace_, setup->elections[i]),
                             .namespace_ = setup->namespace_,
                             .name = setup->elections[i]};
    }
    bool each = store->plan.options->transaction && setup->election_count > 1;
    store->session_count = each ? setup->election_count : 1;
    store->sessions = memory_zeroed(store->session_count, sizeof *store->sessions);
    for (size_t i = 0; i < store->session_count; i++) {
        pg_session_init(&store->sessions[i], store, each ? i : 0, each ? 1 : setup->election_count);
    }
    pg_rows_init(store);
    char names[256];
    pg_target_environment(names, sizeof names);
    if (names[0] != '\0') {
        log_event(LOG_INFO, "store-environment", LOG_TEXT("variables", names));
    }
    (void)uv_timer_init(setup->loop, &store->timer); /* cannot fail */
    store->timer.data = store;
    store_lives_begin(&store->lives);
    return &store->base;
}

const struct store_ops postgres_store_ops = {
    .kind = "postgres",
    .poll_ns = POLL_NS,
    .batches = true,
    .claims = pg_target_claims,
    .check = pg_target_check,
    .open = postgres_open,
    .acquire = postgres_acquire,
    .renew = postgres_renew,
    .release = postgres_release,
    .lock_space = postgres_lock_space,
    .close = postgres_close,
};
