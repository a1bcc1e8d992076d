#ifndef GAVEL_SIM_VOTES_H
#define GAVEL_SIM_VOTES_H

#include "election/round.h"
#include "model_store.h"
#include "rng.h"

#define VOTES_NODES 5
#define VOTES_HOSTS 3
#define VOTES_EVENTS 4096
#define VOTES_TTL_NS (10 * NS_PER_S)
#define VOTES_MARGIN_NS (2 * NS_PER_S)

enum votes_what { VOTES_WAKE, VOTES_TICK, VOTES_ARRIVES, VOTES_REPLY, VOTES_FAULT, VOTES_READ };

struct votes_event {
    int64_t at_ns; /* true time */
    uint64_t order;
    enum votes_what what;
    int host;
    int life; /* of the host */
    size_t node;
    uint64_t request;
    struct lock_request ask;
    struct instant sent;
    struct lock_result result;
};

struct votes_host {
    bool up;
    int life; /* counts its starts */
    size_t node_count;
    struct election_config config;
    struct election election;
    struct round round;
    struct handouts handouts;
    struct sim_clock boot;
    int64_t woken_until_ns;      /* paused until then */
    uint64_t asked[VOTES_NODES]; /* the request under way; 0: none */
    unsigned cut;                /* nodes it cannot reach, a bit each */
    int64_t valid_until_ns;      /* true time */
    uint64_t token;              /* of the last grant that it led */
};

struct votes_world {
    bool trace;
    struct rng rng;
    uint64_t seed;
    int64_t now_ns;
    int64_t end_ns;
    bool forgets; /* nodes lose what they know; else tokens rise by what is recorded alone */
    bool grows;   /* some have one node more in their list */
    size_t node_count;
    struct model_store nodes[VOTES_NODES];
    struct model_store saved[VOTES_NODES];
    bool down[VOTES_NODES];
    struct votes_host hosts[VOTES_HOSTS];
    struct votes_event events[VOTES_EVENTS];
    size_t event_count;
    uint64_t order;
    uint64_t requests;
    uint64_t grants;
    uint64_t max_token;
    unsigned runs;
    char violation[300];
};

/* Plays one schedule; `violation` says what was found. */
void votes_run(struct votes_world *world, uint64_t seed);

/* What goes wrong next; part of the schedule. */
void votes_fault(struct votes_world *world);

/* For both files. */
void votes_plan(struct votes_world *world, int64_t after_ns, struct votes_event event);
void votes_start_host(struct votes_world *world, int host);
void votes_step(struct votes_world *world, int host, struct election_event event);

#endif
