#ifndef GAVEL_ELECTION_ROUND_INSIDE_H
#define GAVEL_ELECTION_ROUND_INSIDE_H

/* What round.c and round_reply.c share; nobody else includes this. */

#include "election/round.h"

/* How many nodes have given a definite answer to the operation, and how many may still. */
size_t round_said(const struct round *round);
size_t round_pending(const struct round *round);

/* The grant of the present operation; NULL: it is about none (a look). */
struct quorum *round_grant(struct round *round);

/* Ends the operation with an answer. */
void round_say_yes(struct round *round, int64_t now_ns, bool counting);
void round_say_no(struct round *round, int64_t now_ns, enum election_reason reason);
void round_say_unsure(struct round *round);

#endif
