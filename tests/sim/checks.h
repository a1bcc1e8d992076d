#ifndef GAVEL_SIM_CHECKS_H
#define GAVEL_SIM_CHECKS_H

#include "world.h"

/*
 * What must never happen, checked as it would. The bookkeeping is the simulator's own: of a
 * candidate it uses what it answers, publishes and asks for, never how it came to it.
 */

/* An event is about to be given to the process: its replies extend or end the grant's lease. */
void checks_event(struct world *world, struct host *host, const struct election_event *event);

/* What the step said. */
void checks_actions(struct world *world, const struct host *host,
                    const struct election_actions *actions);

/* The view is about to be published: the change must be a legal one. */
void checks_view(struct world *world, struct host *host, const struct view *view);

/* The operation is about to be given to the store: one at a time, and P4. */
void checks_operation(struct world *world, const struct host *host,
                      const struct election_actions *actions);

/* The store has carried out a request: tokens are issued, keys come and go as they may. */
void checks_applied(struct world *world, const struct message *message,
                    const struct lock_key *before, const struct lock_result *result);

/* A reader was answered: P1, P2, P3. */
void checks_answer(struct world *world, struct host *host, struct instant now,
                   const struct answer *answer);

/* ... or its attached application was, on a connection of its own. */
void checks_answer_to(struct world *world, struct host *host, struct instant now,
                      const struct answer *answer, bool app);

/* It was told to stop by then: until then it may work. */
void checks_promise(struct world *world, const struct host *host, int64_t end_ns);

/* The applications of the host have stopped. */
void checks_forget_validities(struct world *world, const struct host *host);

/* Now and then: whether anybody leads. */
void checks_sample(struct world *world);

/* The schedule is over: somebody must lead. */
void checks_end(struct world *world);

/* P2 (tokens.c). */
void checks_token_issued(struct world *world, const struct lock_request *request,
                         const struct lock_result *result);
void checks_token_answered(struct world *world, const struct host *host, uint64_t token);
/* The token that was issued as number `order` may be lower than an older one. */
bool checks_token_excused(const struct world *world, unsigned order);

#endif
