#ifndef GAVEL_ELECTION_ROUND_INSIDE_H
#define GAVEL_ELECTION_ROUND_INSIDE_H

/* What the files of the rounds share; nobody else includes this. */

#include "election/round.h"

/* How much of its time an operation waits for slow nodes once it could go on without them. */
#define ROUND_PATIENCE_SHARE 3

/* How many nodes have given a definite answer to the operation, and how many may still. */
size_t round_said(const struct round *round);
size_t round_pending(const struct round *round);

/* The grant of the present operation; NULL: it is about none (a look). */
struct quorum *round_grant(struct round *round);

/* One of our own grants that is over. */
bool round_is_ended(const struct round *round, const unsigned char *nonce);

/* A node that may hold a grant which is over gives it back. Its mark is as good as the lease: on a
 * node that proved the one before, which nobody led on, that proof goes on. `node`: what is known
 * of the grant there, NULL if nothing. */
void round_give_back(struct round *round, size_t index, const unsigned char *nonce,
                     const struct quorum_node *node);

/* Ends the operation, or goes on to its second part, as soon as the answers allow it. */
void round_judge(struct round *round, int64_t now_ns);

/* Asks those that refused once more: others are giving back. One of them. */
void round_ask_again(struct round *round);
void round_ask_node_again(struct round_node *node);

/* The operation's answer. */
void round_say_yes(struct round *round, int64_t now_ns, bool counting);
void round_say_no(struct round *round, int64_t now_ns, enum election_reason reason);
void round_say_unsure(struct round *round);

#endif
