#ifndef GAVEL_STORE_POSTGRES_GATE_H
#define GAVEL_STORE_POSTGRES_GATE_H

#include "store/postgres/route.h"
#include "store/postgres/sql.h"

/*
 * The one way to a lock connection. For each address, within one limit of time: connect; read who
 * the server is and what the table is like; with a second connection find out whether a pooler
 * shares sessions out, before anything is locked or set; set the session up and read that back;
 * prove that a lock shuts the second connection out. What is missing is said with what mends it.
 */
enum pg_gate_step {
    PG_GATE_IDLE,
    PG_GATE_BEGIN,         /* from the loop, so that no callback comes from inside start */
    PG_GATE_LOOKUP,        /* the name is looked up */
    PG_GATE_OPEN,          /* the lock connection is made */
    PG_GATE_FACTS,         /* it says who and where it is */
    PG_GATE_OPEN_SECOND,   /* the second is made */
    PG_GATE_SECOND_BEGINS, /* it opens a transaction and says where it is */
    PG_GATE_SAME,          /* the lock connection is asked again while that lasts */
    PG_GATE_CREATE,        /* the table is made, on the second */
    PG_GATE_SETTLE,        /* settings and a lock with a random key */
    PG_GATE_SECOND_TRIES,  /* the second is refused that lock */
    PG_GATE_FINISH,        /* the random key is given back, releases are listened to */
};

struct pg_gate {
    const struct pg_plan *plan;
    struct pg_route *route;
    struct pg_link *link; /* the session's; its events are the gate's until it is open */
    uv_loop_t *loop;
    struct store_lives *lives;
    void (*opened)(void *context, const struct pg_place *place);
    void (*failed)(void *context, enum pg_failure failure, const char *text);
    void *context;

    enum pg_gate_step step;
    uv_timer_t timer;
    struct pg_link second;
    struct pg_place place;
    int rounds;
    bool proxied; /* the pids are not the server's: something is between us */
    bool missing; /* the table is to be made */
    bool may_create;
    uint64_t random; /* a key that nobody has */
    char role[64];
    bool silent;             /* the last address gave no answer in time */
    enum pg_failure failure; /* the worst so far, and its text */
    char text[PG_TEXT];
};

/* Fill in the members above first. */
void pg_gate_init(struct pg_gate *gate);
/* opened or failed is called exactly once, unless it is cancelled. */
void pg_gate_start(struct pg_gate *gate);
void pg_gate_cancel(struct pg_gate *gate);
void pg_gate_close(struct pg_gate *gate);

/* Judges what was answered (gate_check.c). False: it is of no use, failure and text say why. */
struct pg_verdict {
    enum pg_failure failure;
    char text[PG_TEXT];
};
bool pg_check_facts(struct pg_gate *gate, const struct pg_answers *answers,
                    struct pg_verdict *verdict);
bool pg_check_second(struct pg_gate *gate, const struct pg_answers *answers,
                     struct pg_verdict *verdict);
bool pg_check_same(struct pg_gate *gate, const struct pg_answers *answers,
                   struct pg_verdict *verdict);
bool pg_check_settings(const struct pg_gate *gate, const struct pg_answers *answers,
                       struct pg_verdict *verdict);

/* The column of the first row, "" for none and for NULL. */
const char *pg_value(const PGresult *result, int row, const char *column);
/* The result whose first column has this name; NULL: none. */
const PGresult *pg_result(const struct pg_answers *answers, const char *first_column);
bool pg_is_true(const char *value);

#endif
