#ifndef GAVEL_ELECTION_PROOF_H
#define GAVEL_ELECTION_PROOF_H

#include "election/reply.h"

/*
 * Delayed leading: what one server's record proves about how the lease before a grant ended. A
 * recorded end counts only for those who vouch for that server's clock, and who have not seen the
 * lease held after it. The caller's memory; zeroed: nothing is known yet.
 */
struct proof {
    struct vouch vouch;
    int64_t held_seen_us;            /* the server's clock when the lock was last seen held */
    char held_server[SERVER_ID_MAX]; /* whose clock that is */
};

/* Every definite reply is a measurement of the server's clock. It arrived at `arrived_ns`. */
void proof_learn(struct proof *proof, const struct store_reply *reply, int64_t arrived_ns,
                 int64_t margin_ns, int64_t wait_ns);

/* The lock was held, by whomever, when this reply was made. Not before the reply is judged. */
void proof_held(struct proof *proof, const struct store_reply *reply);

/* Whether an older lease may still be trusted, given a YES to an acquire that proof_learn() has
 * heard of just now. DOUBT_NONE: no. */
enum prior_doubt proof_judge(const struct proof *proof, const struct store_reply *reply,
                             int64_t arrived_ns, int64_t margin_ns, int64_t wait_ns);

#endif
