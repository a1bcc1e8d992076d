#ifndef GAVEL_SIM_SESSION_H
#define GAVEL_SIM_SESSION_H

#include "world.h"

/*
 * A lock that goes with its connection, and a row beside it that outlives both: what the PostgreSQL
 * store does, and, with a process instead of a connection, the local one. An operation is several
 * messages, with everything that can happen in between; the row is written over a connection of its
 * own. The lock may be gone before its holder knows, and be there after its holder is gone.
 */

enum session_stage {
    STAGE_OVER,
    STAGE_TRY,
    STAGE_LOOK,
    STAGE_PROBE,
    STAGE_MINT,
    STAGE_RAISE,
    STAGE_MARK,
    STAGE_UNLOCK,
    STAGE_GIVE_UP, /* unlocks, and the request is answered unsure */
};

/* --- the server ------------------------------------------------------------------------------ */

unsigned session_open(struct world *world, const struct host *host);
bool session_is_open(const struct world *world, unsigned session);

static inline bool session_is_of_row(int stage) {
    return stage == STAGE_MINT || stage == STAGE_RAISE || stage == STAGE_MARK;
}

/* When a message of the stage comes, if it was to come at `at_ns`: not before `*last_ns`. */
static inline int64_t session_in_order(int stage, int64_t *last_ns, int64_t at_ns) {
    if (session_is_of_row(stage)) {
        return at_ns; /* a connection of its own */
    }
    *last_ns = at_ns > *last_ns ? at_ns : *last_ns + 1;
    return *last_ns;
}

/* Its lock goes with it. */
void session_end(struct world *world, unsigned session);
void session_end_all(struct world *world);

/* Carries out the request's stage. False: its connection is gone, nobody answers. */
bool session_apply(struct world *world, const struct lock_request *request,
                   struct lock_result *result);

/* --- the process's side ----------------------------------------------------------------------- */

/* The first message of the host's operation. */
void session_send(struct world *world, struct host *host);

/* A message reaches the server. */
void session_request(struct world *world, const struct message *message);

/* An answer reaches the host. True: the operation is over, and the reply is the message's. */
bool session_reply(struct world *world, struct host *host, struct message *message);

/* ... or one that came too late. */
void session_learn(struct host *host, const struct message *message);

/* The attempt's time is over. */
void session_timeout(struct world *world, struct host *host);

/* The host learns that the connection is gone. */
void session_lost(struct world *world, struct host *host);

/* The process is gone: so are its connections, unless the server cannot know. */
void session_host_stops(struct world *world, struct host *host);

#endif
