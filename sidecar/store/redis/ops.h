#ifndef GAVEL_STORE_REDIS_OPS_H
#define GAVEL_STORE_REDIS_OPS_H

#include "election/reply.h"

#include <stdbool.h>
#include <stddef.h>

/* The requests of a link, one place for each election, and the order in which answers are due. */

#define REDIS_OP_TEXT 160

enum redis_op_state {
    REDIS_OP_IDLE,
    REDIS_OP_QUEUED,  /* waits for a connection */
    REDIS_OP_SENT,    /* waits for its answer */
    REDIS_OP_HELD,    /* answered, waits for the replicas */
    REDIS_OP_DOUBTED, /* about to be answered: unsure */
};

struct redis_op {
    int64_t deadline_ns; /* BOOTTIME */
    int64_t hold_ns;     /* BOOTTIME; not sent before, unless redis_link_unhold() */
    struct instant sent;
    char *text; /* doubted: why, on the heap; else NULL */
    enum redis_op_state state : 8;
    enum election_reason reason : 8;
    bool body; /* sent as EVAL */
};

struct redis_ops {
    struct redis_op *list;
    size_t count;
    size_t *order; /* ring of what was sent; `count` stands for a WAIT, of which there is one */
    size_t first;
    size_t due; /* answers */
};

/* The caller's memory. */
void redis_ops_init(struct redis_ops *ops, size_t count);
void redis_ops_finish(struct redis_ops *ops);

/* Something was sent. */
void redis_ops_push(struct redis_ops *ops, size_t index);
/* Its answer came. */
size_t redis_ops_pop(struct redis_ops *ops);
/* None will come any more. */
void redis_ops_forget(struct redis_ops *ops);

/* On its way, answered or not. */
static inline bool redis_op_is_under_way(const struct redis_op *op) {
    return op->state == REDIS_OP_SENT || op->state == REDIS_OP_HELD;
}
/* Its text is cut to REDIS_OP_TEXT; whoever answers it takes and frees the copy. */
void redis_op_doubt(struct redis_op *op, enum election_reason reason, const char *text);
void redis_ops_doubt_under_way(struct redis_ops *ops, enum election_reason reason,
                               const char *text);
void redis_ops_doubt_queued(struct redis_ops *ops, enum election_reason reason, const char *text);

/* The earliest deadline of all that is under way; NEVER_NS: nothing is. */
int64_t redis_ops_deadline_ns(const struct redis_ops *ops);
/* When something has to be done; with a connection, also about what was held back. */
int64_t redis_ops_earliest_ns(const struct redis_ops *ops, bool connected);

#endif
