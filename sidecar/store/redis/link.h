#ifndef GAVEL_STORE_REDIS_LINK_H
#define GAVEL_STORE_REDIS_LINK_H

#include "base/log.h"
#include "store/redis/backoff.h"
#include "store/redis/command.h"
#include "store/redis/ops.h"
#include "store/redis/route.h"

/*
 * The connection that all requests share. Requests are pipelined, replies matched by order: a
 * reply that does not come in time kills the connection, so that it can never be taken for the
 * answer to another request. A lost connection is made again at once, then with backoff.
 * An answer may be held until replicas have acknowledged what it tells of (barrier.h).
 */
enum redis_link_taken {
    REDIS_LINK_STRANGE, /* it has no known shape (the link then calls `doubt`) */
    REDIS_LINK_TAKEN,
    REDIS_LINK_HELD, /* it counts only once `replicas` have it: `confirmed` or `doubt` follows */
};

struct redis_link_setup {
    struct redis_gate_setup gate;      /* its callbacks are the link's own */
    struct redis_sentinels *sentinels; /* NULL: the URL names the server itself */
    unsigned replicas;                 /* that have to acknowledge what is held */
    size_t op_count;
    int64_t backoff_most_ns;
    /* The bytes of a request; `body` asks for EVAL. */
    struct redis_command (*request)(void *context, size_t op, bool body);
    /* An answer that is no error. */
    enum redis_link_taken (*answer)(void *context, size_t op, struct instant sent,
                                    const redisReply *reply);
    void (*confirmed)(void *context, size_t op);
    /* Nobody knows what happened; `sent` is zero when nothing was sent. */
    void (*doubt)(void *context, size_t op, struct instant sent, enum election_reason reason,
                  const char *text);
    void (*opened)(void *context);
    void (*trouble)(void *context, const char *text); /* the connection, not one request */
    void *context;
};

struct redis_link {
    struct redis_link_setup setup;
    struct redis_route route;
    uv_timer_t timer;
    struct redis_stream *stream; /* NULL: not connected */
    bool broken;                 /* the stream said so while a caller was still inside */
    bool connecting;
    bool closed;
    bool late;       /* a timer came late; one turn of the loop for what has arrived already */
    bool no_evalsha; /* this server takes EVAL only */
    bool proven;     /* this connection has answered a request */
    uint32_t warnings;
    struct redis_backoff backoff;
    int64_t retry_ns; /* BOOTTIME of the next attempt; 0: none planned */
    int64_t budget_ns;
    struct redis_ops ops;
    bool waiting;                /* a WAIT is under way */
    char text[REDIS_OP_TEXT];    /* the connection's last trouble */
    bool refused;                /* ... was the server's word, not silence */
    struct log_limit lost_limit; /* apart: why it was lost is not why it cannot be made again */
    struct log_limit failed_limit;
};

/* The caller's memory; it must outlive what is counted in the gate's `lives`, then finish it. */
void redis_link_init(struct redis_link *link, const struct redis_link_setup *setup);
void redis_link_finish(struct redis_link *link);

/* One request; `hold_ns` is how long it waits for redis_link_unhold(), 0: not at all. One of
 * `answer` and `doubt` follows, later. */
void redis_link_submit(struct redis_link *link, size_t op, int64_t timeout_ns, int64_t hold_ns);
/* Sends what was held. */
void redis_link_unhold(struct redis_link *link);

/* The master is elsewhere: gives up the connection, if there is one, and makes another soon. */
void redis_link_move(struct redis_link *link, const char *why);

/* No callback comes any more. */
void redis_link_close(struct redis_link *link);

#endif
