#ifndef GAVEL_ELECTION_QUORUM_H
#define GAVEL_ELECTION_QUORUM_H

#include "election/reply.h"

#include <stddef.h>

/*
 * One grant on N independent servers: which of them count, and until when. Pure, the caller's
 * memory, nothing to free, re-entrant. Times are BOOTTIME in nanoseconds.
 *
 * A node that proves how its last lease ended counts at once. Any other may have forgotten a lease
 * that somebody still trusts, so it counts only on a yes that was sent W after its grant arrived:
 * Redlock's known counter-example, one node that restarts empty, is answered by that alone.
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 * https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
#define QUORUM_NODES_MAX 15

/* What one node has said about a grant. */
struct quorum_node {
    bool held;           /* it said yes, and did not say no since */
    bool refused;        /* its last definite answer was no */
    bool missing;        /* ... because there was no key: it can be repaired */
    bool maybe;          /* asked for the lock without an answer: it may have given it */
    bool raise_lost;     /* a raise had no answer: its token may turn up at any time */
    bool proved;         /* the lease before was proved over: counts at once */
    int64_t granted_ns;  /* arrival of the yes that granted it */
    struct instant sent; /* when the request of its newest yes was sent */
    uint64_t token;      /* of its lease */
    enum prior_doubt doubt;
    char server[SERVER_ID_MAX];
};

struct quorum {
    size_t count;        /* nodes that are configured: what a majority is a majority of */
    int64_t good_for_ns; /* ttl - margin */
    unsigned char nonce[NONCE_BYTES];
    bool live;            /* asked for or held; else what comes in late is given back */
    bool counted;         /* it led, or may have: only nodes that count matter from now on */
    uint64_t token;       /* of the grant, on a majority; 0: none yet */
    int64_t first_yes_ns; /* when it was first reported; 0: not yet */
    int64_t told_sent_ns; /* of the newest yes that was reported */
    struct quorum_node nodes[QUORUM_NODES_MAX];
};

/* Which nodes are asked for. */
struct quorum_rule {
    bool counting;   /* only those that count ... */
    int64_t wait_ns; /* ... when this is W */
    int64_t open_ns; /* whose own deadline is after this */
    int64_t sent_ns; /* whose newest yes was sent at this or later */
    uint64_t token;  /* whose lease has this token or a greater one */
};

void quorum_init(struct quorum *quorum, size_t count, int64_t good_for_ns,
                 const unsigned char *nonce);

/* More than half of the configured nodes, whether they can be reached or not. */
size_t quorum_majority(const struct quorum *quorum);

/* A yes to an acquire. `doubt` is how sure it is that the lease before is over. A repetition of
 * what is held already changes nothing but the time. */
void quorum_granted(struct quorum *quorum, size_t node, const struct store_reply *reply,
                    enum prior_doubt doubt, int64_t arrived_ns);
/* A yes to a renewal. From another server than before (a restart), after a no, or later than the
 * node's lease can have lasted, it is a new grant that proves nothing. */
void quorum_renewed(struct quorum *quorum, size_t node, const struct store_reply *reply,
                    int64_t arrived_ns);
/* The node's own no. */
void quorum_refused(struct quorum *quorum, size_t node, bool missing);

/* Whether a node counts, by its newest yes. */
bool quorum_counts(const struct quorum_node *node, int64_t wait_ns);

/* How many servers hold the grant under the rule. Two names of one server are one vote, and so are
 * all that do not say who they are. */
size_t quorum_votes(const struct quorum *quorum, const struct quorum_rule *rule);

/* The majority-th latest send among them: its lease is the grant's. False: there is no majority. */
bool quorum_sent(const struct quorum *quorum, const struct quorum_rule *rule, struct instant *sent);

/* So many nodes said no that those which are left are no majority. */
bool quorum_is_over(const struct quorum *quorum);

/* The greatest token of the leases under the rule; 0: none. */
uint64_t quorum_token(const struct quorum *quorum, const struct quorum_rule *rule);

/* When a majority of those that hold it will count; NEVER_NS: no majority holds it. */
int64_t quorum_counts_from(const struct quorum *quorum, int64_t wait_ns);

/* Why not all that hold it count: the first doubt; DOUBT_NONE: they do. */
enum prior_doubt quorum_doubt(const struct quorum *quorum);

#endif
