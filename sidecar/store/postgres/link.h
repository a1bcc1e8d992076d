#ifndef GAVEL_STORE_POSTGRES_LINK_H
#define GAVEL_STORE_POSTGRES_LINK_H

#include "election/instant.h"
#include "store/lives.h"
#include "store/postgres/failure.h"

#include <libpq-fe.h>
#include <uv.h>

/*
 * One libpq connection on the loop, one message (of one or more statements) at a time. Nothing
 * here blocks: of libpq only PQconnectStartParams, PQconnectPoll, PQsendQuery and what goes with
 * them are called, and every address is a number by then. It is read from all the time, so that
 * the end of the session is seen at once.
 *
 * Events come from the loop only, never from inside pg_link_open() or pg_link_send(), and may
 * call anything, pg_link_drop() too.
 */
enum pg_link_state { PG_LINK_DOWN, PG_LINK_CONNECTING, PG_LINK_READY, PG_LINK_BUSY };

#define PG_RESULTS_MAX 8

/* What one message was answered by; good only during the event. */
struct pg_answers {
    const PGresult *list[PG_RESULTS_MAX]; /* rows and commands in order, without the error */
    size_t count;
    bool failed;
    bool warned; /* a WARNING came along: what was committed may not be replicated */
    enum pg_failure failure;
    char sqlstate[PG_SQLSTATE];
    char text[PG_TEXT]; /* "42501: permission denied for table gavel_election" */
};

struct pg_link_events {
    void (*opened)(void *context); /* may be NULL */
    /* No connection, or not any more: by then the link is down. */
    void (*down)(void *context, enum pg_failure failure, const char *text);
    void (*answered)(void *context, const struct pg_answers *answers);
    void (*notified)(void *context, const char *payload); /* may be NULL */
};

struct pg_watch;

/* The caller's memory; it must outlive what is counted in `lives`. */
struct pg_link {
    uv_loop_t *loop;
    struct store_lives *lives;
    const struct pg_link_events *events;
    void *context;

    enum pg_link_state state;
    unsigned generation; /* grows with each drop: whether a callback has changed the link */
    PGconn *conn;
    struct pg_watch *watch; /* one socket's handle; a new one for each step of connecting */
    PGresult *results[PG_RESULTS_MAX];
    size_t result_count;
    struct pg_answers answers;
    struct instant sent;      /* read before the first byte of the message could leave */
    char last_words[PG_TEXT]; /* what the server said before it ended the session */
    char last_state[PG_SQLSTATE];
};

void pg_link_init(struct pg_link *link, uv_loop_t *loop, struct store_lives *lives,
                  const struct pg_link_events *events, void *context);
/* Starts to connect. False: `failure` and `text` say why not. `names` and `values` as for libpq. */
bool pg_link_open(struct pg_link *link, const char *const *names, const char *const *values,
                  enum pg_failure *failure, char text[PG_TEXT]);
/* The link must be ready. False: it is broken, to be dropped; no event comes. */
bool pg_link_send(struct pg_link *link, const char *sql);
/* Ends the session, without an event. Nothing if it is down. */
void pg_link_drop(struct pg_link *link);

#endif
