#ifndef GAVEL_ELECTION_ROUND_H
#define GAVEL_ELECTION_ROUND_H

#include "election/election.h"
#include "election/proof.h"
#include "election/quorum.h"

/*
 * One election on N servers: turns the candidate's operations, one at a time, into requests to the
 * nodes, and the nodes' answers into one answer. Pure: requests come out of round_next(), answers
 * go into round_answered(), and whoever has both a loop and connections (the Redlock store, the
 * simulator) carries them. A node has one request at a time; what it is asked next waits.
 *
 * An acquire or a renewal that raises the token has two parts: ask all nodes, then write the
 * greatest token of a majority back to a majority. Only then is it answered with a yes. A majority
 * that could lead at once gives the other nodes a moment to tell of a lease under another list.
 * What a failed operation may have left is given back in the background, as are acquires that are
 * answered too late; nodes that miss their key get it again from the grant's renewals.
 */
struct round_config {
    size_t node_count;
    int64_t ttl_ns;
    int64_t margin_ns;
};

/* An operation of the candidate. */
struct round_ask {
    enum election_op op;
    unsigned char nonce[NONCE_BYTES];
    uint64_t seen_token;
    int64_t wait_ns;
    bool take;
    bool raise_token;
    bool clean;
    uint64_t token;
    int64_t timeout_ns;
};

/* A request to a node: the same, with what is special to the node. */
struct round_request {
    size_t node;
    struct round_ask ask;       /* token: renew, acquire: the least one; release: the node's own */
    char server[SERVER_ID_MAX]; /* release: who confirmed it last */
};

/* What a node says beside its reply: how far the list of nodes in its record is from ours, if a
 * lease or an unexpired record stands under that list. One that has run out is a warning all the
 * same, for W: its leader may hold other nodes. */
enum round_lists { LISTS_SAME, LISTS_ONE_APART, LISTS_FURTHER_APART, LISTS_RUN_OUT };

/* Something that a node has to give back. */
struct round_return {
    bool wanted;
    bool clean;
    unsigned char nonce[NONCE_BYTES];
    uint64_t token;
    char server[SERVER_ID_MAX];
};

/* What a node told of a release, since the operation began. */
struct round_told {
    bool told;
    bool clean;
    unsigned char nonce[NONCE_BYTES];
};

struct round_node {
    struct proof proof;
    struct round_ask asked; /* under way; OP_NONE: idle */
    unsigned asked_serial;  /* of the operation that it was asked for; 0: in the background */
    bool wanted;            /* is to be asked for the present operation */
    bool answered;          /* has nothing more to say to it */
    bool repair;            /* its key is missing and is to be made anew */
    struct round_return back;
    bool said; /* a definite answer to the present operation: */
    struct store_reply reply;
};

struct round {
    struct round_config config;
    struct quorum grants[2]; /* the one that is held, and one that is asked for */
    size_t held;             /* index of the first */
    unsigned char ended[ENDED_NONCES][NONCE_BYTES];
    bool untold[ENDED_NONCES]; /* ended before anybody was told that it was granted */
    unsigned ended_count;
    struct round_node nodes[QUORUM_NODES_MAX];
    struct round_told told[QUORUM_NODES_MAX];

    struct round_ask ask; /* the present operation; OP_NONE: none */
    unsigned serial;
    int64_t started_ns, patience_ns, deadline_ns;
    int64_t glance_ns;  /* a majority would do: those silent so far are waited for until then */
    int64_t settled_ns; /* a majority has spoken: with rivals among them, that is enough then */
    int64_t again_ns;   /* when those that refused are asked once more; 0: they are not */
    unsigned agains;    /* how often they were */
    int64_t wait_ns;    /* W, as far as is known by now */
    int64_t longest_ttl_ns;
    int64_t lists_ns;    /* until then another list is warned of; the grant has written over it */
    bool writes;         /* the second part: the token is written back */
    bool clash;          /* a lease stands under a list that is too different */
    bool one_server;     /* a majority of nodes gave the lock, which are too few servers */
    unsigned collisions; /* acquires in a row that met parts of the lock in several hands */
    uint32_t warnings;

    bool done; /* `reply` is the answer to the operation, to be taken by round_take() */
    struct store_reply reply;
    size_t blamed; /* UNSURE: the node whose words tell best why; the count: none */
};

void round_init(struct round *round, const struct round_config *config);

/* Starts an operation; the one before has been answered. */
void round_start(struct round *round, const struct round_ask *ask, int64_t now_ns);

/* The next request that has to go out now; false: none. */
bool round_next(struct round *round, int64_t now_ns, struct round_request *request);

/* The answer to what a node was asked. It gives exactly one to each request. */
void round_answered(struct round *round, size_t node, const struct store_reply *reply,
                    enum round_lists lists, int64_t now_ns);

/* A node tells that the lease with this nonce was given back there, `clean`: with the mark. A
 * rival's is asked for again, by round_next(). True: a majority has told of this same one since the
 * operation began, all of them with the mark or not; before, trying is in vain, and candidates that
 * give back what they took are no news. */
bool round_told(struct round *round, size_t node, const unsigned char *nonce, bool *clean);

/* Time has passed. */
void round_tick(struct round *round, int64_t now_ns);
/* When to call round_tick(); NEVER_NS: only answers matter. */
int64_t round_wake_ns(const struct round *round, int64_t now_ns);

/* The answer to the operation, once. */
bool round_take(struct round *round, struct store_reply *reply);

/* Whether a node has said no or yes to the operation that was answered last. */
bool round_heard(const struct round *round, size_t node);

#endif
