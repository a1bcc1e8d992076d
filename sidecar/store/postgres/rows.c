#include "store/postgres/parts.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_NS NS_PER_S
#define DEAD_LEAST_NS NS_PER_S
#define CONNECT_NS (2 * NS_PER_S)

/* Whatever went wrong: the next one starts on a new connection. */
static void drop(struct pg_store *store) {
    pg_link_drop(&store->rows.link);
    store->rows.busy = false;
    store->rows.abandoned = false;
    store->rows.warming = false;
}

/* The requests that wait for this connection, or for the message that was out. */
static void doubt_all(struct pg_store *store, enum pg_failure failure, const char *text,
                      bool queued) {
    char kept[PG_TEXT];
    struct pg_answers answers = {.failed = true, .failure = failure};
    pg_text(kept, sizeof kept, text);
    pg_text(answers.text, sizeof answers.text, kept);
    for (size_t i = 0; i < store->setup.election_count && !store->lives.closing; i++) {
        const struct pg_op *op = &store->seats[i].op;
        if (op->stage == PG_STAGE_ROWING || (queued && op->stage == PG_STAGE_ROW)) {
            pg_flow_rowed(store, i, op->row_work, &answers);
        }
    }
}

/* What the answers led to: more for this connection, or a lock that goes back. */
static void go_on(struct pg_store *store) {
    if (store->lives.closing) {
        return;
    }
    pg_rows_pump(store);
    for (size_t i = 0; i < store->session_count; i++) {
        pg_session_pump(&store->sessions[i]);
    }
    pg_store_arm(store);
}

/* A new process of the server is slow the first time: it plans what it will be asked for. */
static void warm_up(struct pg_store *store) {
    struct pg_rows *rows = &store->rows;
    struct pg_sql sql = {0};
    if (!rows->warming || rows->busy || store->lives.closing) {
        return;
    }
    pg_sql_plan_mint(&sql, &store->plan,
                     &(struct pg_row_job){.name = &store->seats[rows->seat].name,
                                          .place = &pg_session_of(store, rows->seat)->place});
    rows->busy = true;
    rows->abandoned = true;
    if (!pg_link_send(&rows->link, sql.text)) {
        rows->since_ns = 1; /* expires at once, from the timer */
    }
    free(sql.text);
}

static void on_opened(void *context) {
    struct pg_store *store = context;
    store->rows.text[0] = '\0';
    store->rows.since_ns = clock_now().boot_ns;
    pg_rows_pump(store);
    warm_up(store);
    pg_store_arm(store);
}

static void on_down(void *context, enum pg_failure failure, const char *text) {
    struct pg_store *store = context;
    bool idle = !store->rows.busy;
    pg_text(store->rows.text, sizeof store->rows.text, text);
    drop(store);
    doubt_all(store, failure, store->rows.text, idle);
    go_on(store);
}

static void on_answered(void *context, const struct pg_answers *answers) {
    struct pg_store *store = context;
    struct pg_rows *rows = &store->rows;
    bool abandoned = rows->abandoned;
    size_t seat = rows->seat;
    enum pg_row_work work = rows->work;
    rows->busy = false;
    rows->abandoned = false;
    rows->since_ns = clock_now().boot_ns;
    const PGresult *row = pg_result(answers, "row");
    bool elsewhere = row != NULL && PQntuples(row) == 1 && !pg_is_true(pg_value(row, 0, "here"));
    PGTransactionStatusType status = PQtransactionStatus(rows->link.conn);
    if (status == PQTRANS_INERROR && !elsewhere && pg_link_send(&rows->link, "ROLLBACK")) {
        rows->busy = true; /* a new process of the server would be slower the first time */
        rows->abandoned = true;
    } else if (elsewhere || status != PQTRANS_IDLE) {
        drop(store);
    }
    if (!abandoned && store->seats[seat].op.stage == PG_STAGE_ROWING) {
        pg_flow_rowed(store, seat, work, answers);
    }
    go_on(store);
}

static const struct pg_link_events link_events = {on_opened, on_down, on_answered, NULL};

static void write_message(struct pg_store *store, size_t i, struct pg_sql *sql) {
    const struct pg_seat *seat = &store->seats[i];
    const struct store_request *request = &seat->op.request;
    struct pg_row_job job = {.name = &seat->name,
                             .place = &pg_session_of(store, i)->place,
                             .seen_token = request->seen_token,
                             .token = seat->grant.token};
    pg_nonce_text(request->nonce, job.nonce);
    switch (seat->op.row_work) {
    case PG_ROW_MINT:
        pg_sql_mint(sql, &store->plan, &job);
        break;
    case PG_ROW_RAISE:
        pg_sql_raise(sql, &store->plan, &job);
        break;
    case PG_ROW_MARK:
        job.token = request->token;
        pg_sql_mark(sql, &store->plan, &job, request->server);
        break;
    case PG_ROW_BEAT:
        pg_sql_beat(sql, &store->plan, &job);
        break;
    case PG_ROW_READ:
        pg_sql_row(sql, &store->plan, &job);
        break;
    case PG_ROW_LEAVE:
        pg_sql_notify_leaving(sql, &seat->name);
        break;
    case PG_ROW_TELL:
        pg_sql_notify(sql, &seat->name, request->clean);
        break;
    }
}

static void send_for(struct pg_store *store, size_t i) {
    struct pg_rows *rows = &store->rows;
    struct pg_sql sql = {0};
    write_message(store, i, &sql);
    rows->busy = true;
    rows->abandoned = false;
    rows->warming = false;
    rows->seat = i;
    rows->work = store->seats[i].op.row_work;
    rows->since_ns = clock_now().boot_ns;
    store->seats[i].op.stage = PG_STAGE_ROWING;
    if (!pg_link_send(&rows->link, sql.text)) {
        rows->since_ns = 1; /* expires at once, from the timer */
    }
    free(sql.text);
}

/* The first that waits, after the one that was served last. */
static bool next_seat(const struct pg_store *store, size_t *seat) {
    size_t count = store->setup.election_count;
    for (size_t n = 1; n <= count; n++) {
        *seat = (store->rows.seat + n) % count;
        if (store->seats[*seat].op.stage == PG_STAGE_ROW) {
            return true;
        }
    }
    return false;
}

void pg_rows_pump(struct pg_store *store) {
    struct pg_rows *rows = &store->rows;
    size_t seat;
    if (rows->busy || store->lives.closing || !next_seat(store, &seat)) {
        return;
    }
    if (rows->link.state == PG_LINK_READY) {
        send_for(store, seat);
    } else if (rows->link.state == PG_LINK_DOWN) {
        enum pg_failure failure;
        rows->since_ns = clock_now().boot_ns;
        if (!pg_route_open(&pg_session_of(store, seat)->route, &rows->link, &failure, rows->text)) {
            rows->since_ns = 1;
        }
    }
}

void pg_rows_warm(struct pg_store *store, size_t seat) {
    struct pg_rows *rows = &store->rows;
    enum pg_failure failure;
    if (rows->link.state != PG_LINK_DOWN || store->lives.closing) {
        return;
    }
    rows->since_ns = clock_now().boot_ns;
    rows->seat = seat;
    rows->warming =
        pg_route_open(&pg_session_of(store, seat)->route, &rows->link, &failure, rows->text);
    pg_store_arm(store);
}

static int64_t dead_ns(const struct pg_store *store) {
    int64_t ttl_ns = store->setup.ttl_ns;
    return ttl_ns > DEAD_LEAST_NS ? ttl_ns : DEAD_LEAST_NS;
}

/* It stays a little: a grant is often followed by more. */
static int64_t idle_ns(const struct pg_store *store) {
    bool needed = store->plan.options->synchronous || store->plan.options->transaction;
    return needed && store->setup.ttl_ns > IDLE_NS ? store->setup.ttl_ns : IDLE_NS;
}

int64_t pg_rows_due_ns(const struct pg_store *store) {
    const struct pg_rows *rows = &store->rows;
    size_t seat;
    switch (rows->link.state) {
    case PG_LINK_DOWN:
        return rows->since_ns == 1 && next_seat(store, &seat) ? 1 : NEVER_NS;
    case PG_LINK_CONNECTING:
        return rows->since_ns + CONNECT_NS;
    case PG_LINK_READY:
        return rows->since_ns + idle_ns(store);
    case PG_LINK_BUSY:
        break;
    }
    return rows->since_ns + dead_ns(store);
}

void pg_rows_expire(struct pg_store *store, int64_t now_ns) {
    struct pg_rows *rows = &store->rows;
    if (now_ns < pg_rows_due_ns(store)) {
        return;
    }
    bool idle = rows->link.state == PG_LINK_READY && !rows->busy;
    bool busy = rows->busy;
    rows->since_ns = now_ns;
    if (rows->link.state == PG_LINK_BUSY) {
        pg_cancel_start(store, rows->link.conn);
    }
    drop(store);
    if (!idle) {
        bool known = !busy && rows->text[0] != '\0';
        doubt_all(store, PG_FAILURE_LOST,
                  known ? rows->text : "no second connection, or no answer on it", !busy);
    }
}

void pg_rows_abandon(struct pg_store *store, size_t seat) {
    if (store->rows.busy && store->rows.seat == seat) {
        store->rows.abandoned = true;
    }
}

void pg_rows_init(struct pg_store *store) {
    pg_link_init(&store->rows.link, store->setup.loop, &store->lives, &link_events, store);
}
