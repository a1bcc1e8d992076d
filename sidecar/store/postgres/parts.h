#ifndef GAVEL_STORE_POSTGRES_PARTS_H
#define GAVEL_STORE_POSTGRES_PARTS_H

#include "base/log.h"
#include "store/postgres/gate.h"

/*
 * How the store's files share the work; nobody else includes this.
 *
 * Each election has a seat: what its lock connection holds, and the one request under way. A
 * request goes through stages: it waits for the lock connection or for the row connection, is in
 * the message that is out on it, and what comes back decides on the next stage (flow.c). Whoever
 * answers a request may be called back into submit or close: nothing is kept over an answer.
 */
enum pg_stage {
    PG_STAGE_NONE,
    PG_STAGE_LOCK,    /* waits for the lock connection */
    PG_STAGE_LOCKING, /* is in the message that is out */
    PG_STAGE_ROW,     /* waits for the row connection */
    PG_STAGE_ROWING,
};

enum pg_row_work {
    PG_ROW_MINT,
    PG_ROW_RAISE,
    PG_ROW_MARK,
    PG_ROW_BEAT,
    PG_ROW_READ,
    PG_ROW_LEAVE, /* followers are told that the lock is about to go back */
    PG_ROW_TELL,  /* and that it has */
};

/* What is held on the lock connection. */
struct pg_grant {
    bool held;
    bool minted;      /* and its token is committed */
    bool synchronous; /* a standby confirmed what was written last */
    unsigned char nonce[NONCE_BYTES];
    uint64_t token;
    enum prior prior;
    enum prior_doubt doubt;
    int64_t longest_ttl_ns;
    int64_t granted_ms; /* by the server's clock */
};

struct pg_op {
    enum pg_stage stage;
    enum store_event_type type;
    struct store_request request;
    struct instant called;
    struct instant sent; /* the first message on the lock connection */
    int64_t deadline_ns;
    enum pg_lock_work lock_work;
    enum pg_row_work row_work;
    bool failing; /* the lock goes back first, then the request is answered with `text` */
    char text[PG_TEXT];
};

struct pg_seat {
    struct pg_name name;
    struct pg_grant grant;
    struct pg_op op;
    bool unmarked;   /* a mark of this grant failed: the lock goes back without one */
    int foreign_pid; /* a holder that is no sidecar, as far as can be seen */
    int64_t foreign_since_ns;
};

struct pg_store;

struct pg_entry {
    size_t seat;
    enum pg_lock_work work;
    unsigned char nonce[NONCE_BYTES];
};

/* A lock connection, and the seats [first, first + count) that share its fate. */
struct pg_session {
    struct pg_store *store;
    size_t first, count;
    struct pg_link link;
    struct pg_route route;
    struct pg_gate gate;
    struct pg_place place;
    bool up; /* through the gate */
    bool gating;
    bool in_transaction; /* --pg-lock transaction: one is open */
    bool standbys;       /* the server streams to somebody */
    int64_t retry_ns;    /* BOOTTIME of the next attempt to connect; 0: none is planned */
    unsigned failures;
    struct pg_entry *entries; /* the message that is out */
    size_t entry_count;
    int64_t out_since_ns; /* 0: none is out */
    char nonce[2 * NONCE_BYTES + 1];
    char text[PG_TEXT]; /* why it is not up */
    bool refused;
};

/* The row connection: short-lived, one transaction at a time. */
struct pg_rows {
    struct pg_link link;
    bool busy; /* a message is out, for this seat and this kind of work */
    size_t seat;
    enum pg_row_work work;
    bool abandoned;           /* its request has been answered */
    bool warming;             /* opened for a grant that is expected, for `seat` */
    struct pg_cancel *cancel; /* one that is under way */
    int64_t since_ns;         /* BOOTTIME of what is waited for: connecting, an answer, more work */
    char text[PG_TEXT];       /* why the last attempt to connect failed; empty: it did not */
};

struct pg_store {
    struct store base;
    struct store_setup setup;
    struct pg_plan plan;
    struct store_lives lives;
    struct pg_seat *seats;
    struct pg_session *sessions;
    size_t session_count;
    struct pg_rows rows;
    uv_timer_t timer;
    bool kicked; /* something was asked for in this turn of the loop */
    bool late;   /* the timer came late: what has arrived is read first */
    bool connected_before;
    size_t troubled; /* the election that `problem` is about; the count: all of them */
    struct log_limit failed_limit; /* of what repeats at each attempt to connect */
    struct log_limit lost_limit;
    void (*closed)(void *context);
    void *closed_context;
};

/* postgres.c */
void pg_store_answer(struct pg_store *store, size_t seat, const struct store_event *event);
void pg_store_doubt(struct pg_store *store, size_t seat, enum election_reason reason,
                    const char *text);
void pg_store_trouble(struct pg_store *store, bool lost, const char *text);
void pg_store_arm(struct pg_store *store);
struct pg_session *pg_session_of(struct pg_store *store, size_t seat);

/* session.c */
void pg_session_init(struct pg_session *session, struct pg_store *store, size_t first,
                     size_t count);
void pg_session_finish(struct pg_session *session);
/* Sends what waits, or sees to a connection. */
void pg_session_pump(struct pg_session *session);
/* Every election on it is told before the connection is closed. */
void pg_session_lose(struct pg_session *session, enum pg_failure failure, const char *text);
int64_t pg_session_due_ns(const struct pg_session *session);
void pg_session_expire(struct pg_session *session, int64_t now_ns);
void pg_session_close(struct pg_session *session);

/* rows.c */
void pg_rows_init(struct pg_store *store);
void pg_rows_pump(struct pg_store *store);
int64_t pg_rows_due_ns(const struct pg_store *store);
void pg_rows_expire(struct pg_store *store, int64_t now_ns);
/* A grant is expected soon: what it will need is made ready, the connection and the plans. */
void pg_rows_warm(struct pg_store *store, size_t seat);
/* The request that the message was for is answered: its answer is not waited for. */
void pg_rows_abandon(struct pg_store *store, size_t seat);

/* cancel.c: asks the server, from the thread pool, to end what runs for this connection, which is
 * going to be dropped. A backend that waits for a standby would not notice that otherwise. */
void pg_cancel_start(struct pg_store *store, PGconn *conn);

/* flow.c: the first stage of a request, and what follows from each answer. */
void pg_flow_begin(struct pg_store *store, size_t seat);
/* `keys` has the row of this key in `row`; `yes`: what the try or the unlock said, "": nothing. */
void pg_flow_locked(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                    const PGresult *keys, int row);
void pg_flow_lock_failed(struct pg_store *store, const struct pg_entry *entry, const char *yes,
                         const struct pg_answers *answers);
void pg_flow_rowed(struct pg_store *store, size_t seat, enum pg_row_work work,
                   const struct pg_answers *answers);

/* What both of its halves use (flow.c, flow_row.c). */
struct store_event pg_flow_event(struct pg_store *store, size_t i, enum outcome outcome);
void pg_flow_yes(struct pg_store *store, size_t i);
void pg_flow_no(struct pg_store *store, size_t i, enum election_reason reason, const char *text);
void pg_op_to_lock(struct pg_op *op, enum pg_lock_work work);
void pg_op_to_row(struct pg_op *op, enum pg_row_work work);
/* The lock goes back before the request is answered: who could not get a token keeps nothing. */
void pg_op_give_up(struct pg_op *op, const char *text);
/* A mark that could not be written is not tried again while the lock is held: the lock goes back.
 */
void pg_flow_unmarked(struct pg_store *store, size_t i, const char *why);
/* Whether the row is still of this seat's grant. */
bool pg_seat_row_is_ours(const struct pg_seat *seat, const char *nonce, const char *token);

/* message.c: takes up the seats that wait, and writes the message for them. */
void pg_message_collect(struct pg_session *session);
void pg_message_write(struct pg_session *session, struct pg_sql *sql);

/* Milliseconds as the table has them, which anybody may have written: 0 for what no ttl can be. */
int64_t pg_ttl_ns(const char *text);
bool pg_same_nonce(const unsigned char *a, const unsigned char *b);
void pg_nonce_text(const unsigned char nonce[NONCE_BYTES], char text[2 * NONCE_BYTES + 1]);

#endif
