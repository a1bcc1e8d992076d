#ifndef GAVEL_SIM_VOTES_H
#define GAVEL_SIM_VOTES_H

#include "election/round.h"
#include "model_store.h"
#include "rng.h"
#include "schedule.h"

#define VOTES_NODES 5
#define VOTES_HOSTS 3
#define VOTES_EVENTS 4096
#define VOTES_PROMISES 64
#define VOTES_TTL_NS (10 * NS_PER_S)   /* the longest; W of all */
#define VOTES_QUIET_NS (90 * NS_PER_S) /* without faults, at the end */

enum votes_what {
    VOTES_WAKE,
    VOTES_TICK,
    VOTES_ARRIVES,
    VOTES_REPLY,
    VOTES_TOLD, /* a host hears of a release */
    VOTES_FAULT,
    VOTES_READ
};

struct votes_event {
    int64_t at_ns; /* true time */
    enum votes_what what;
    int host;
    int life; /* of the host */
    size_t node;
    uint64_t request;
    struct lock_request ask;
    struct instant sent;
    int64_t sent_at_ns; /* true time */
    struct lock_result result;
};

struct votes_word { /* of one node, about a candidate's grant */
    bool yes;
    struct instant sent; /* the newest request that it said yes to */
    /* The latest REALTIME of all those: a lease keeps it when that clock steps back. */
    int64_t real_most_ns;
    int64_t sent_at_ns; /* true time */
};

/* A candidate's grant, from its requests and the nodes' answers alone. */
struct votes_book {
    bool known;
    bool held; /* the candidate was told that it has it */
    bool dead; /* ... and its time was over since */
    unsigned char nonce[NONCE_BYTES];
    struct votes_word nodes[VOTES_NODES];
};

/* Until when somebody who asked may believe that a host leads. */
struct votes_promise {
    int host;
    int life;
    unsigned char nonce[NONCE_BYTES]; /* of the grant */
    int64_t until_ns;                 /* true time */
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
    struct sim_clock real;
    int64_t woken_until_ns; /* paused until then */
    int64_t vm_paused_ns;   /* ... with its VM, since then: BOOTTIME stands too; 0: not */
    int64_t ttl_ns, margin_ns;
    uint64_t asked[VOTES_NODES]; /* the request under way; 0: none */
    uint64_t wakes, ticks;       /* the newest timer of each kind alone counts */
    unsigned cut;                /* nodes it cannot reach, a bit each */
    struct votes_book book;
    struct view published;
};

struct votes_world {
    const struct schedule *schedule;
    struct rng rng;
    int64_t now_ns;
    unsigned at_once; /* how many events have come at this moment */
    int64_t end_ns;
    bool forgets;    /* nodes lose what they know; else tokens rise by what is recorded alone */
    bool grows;      /* some have one node more in their list */
    bool steps_back; /* REALTIME of hosts steps back; else VMs stand: never both: a pause would be
                        hidden */
    size_t node_count;
    struct model_store nodes[VOTES_NODES];
    struct model_store saved[VOTES_NODES];
    bool down[VOTES_NODES];
    int64_t disturbed_ns[VOTES_NODES]; /* its keys, by other means than requests: true time */
    bool stepped[VOTES_NODES]; /* its clock has been set; once each, so that candidates can tell */
    struct votes_host hosts[VOTES_HOSTS];
    size_t event_count;
    uint64_t order;
    uint64_t requests;
    uint64_t grants;
    unsigned faults;
    int host_count;
    int last_leader;
    uint64_t failovers;
    int64_t last_lead_ns;
    uint64_t max_token; /* that anybody led with: */
    int led_by;
    int led_in;
    unsigned char led_on[NONCE_BYTES];
    int promise_count;
    struct votes_promise promises[VOTES_PROMISES];
    unsigned runs;
    char violation[300];
    struct votes_event events[VOTES_EVENTS]; /* from here on only the first event_count count */
    int64_t due_ns[VOTES_EVENTS];
    uint64_t orders[VOTES_EVENTS];
};

/* Plays one schedule; `violation` says what was found. */
void votes_run(struct votes_world *world, const struct schedule *schedule);

/* What it starts with. */
void votes_plan_nodes(struct votes_world *world);
void votes_plan_hosts(struct votes_world *world);

/* A request goes to a node; reaches it, and its answer and what it tells everybody go out. */
void votes_send(struct votes_world *world, int host, const struct round_request *request);
void votes_arrive(struct votes_world *world, struct votes_event *event);
/* Nothing goes wrong any more. */
bool votes_is_quiet(const struct votes_world *world);

/* What goes wrong next; part of the schedule. */
void votes_fault(struct votes_world *world);
void votes_heal(struct votes_world *world);

/* What must never happen (votes_checks.c); the bookkeeping is the simulator's own. */
/* Somebody asks. */
void votes_ask(struct votes_world *world, int host);
/* The candidate has started anew. */
void votes_check_start(struct votes_world *world, int host);
/* It is about to take a step; what it made of it. */
void votes_check_event(struct votes_world *world, int host, const struct election_event *event);
void votes_check_step(struct votes_world *world, int host, const struct election_actions *actions);
/* A request goes to a node, arrives there, its answer has come. */
void votes_check_sent(struct votes_world *world, const struct votes_event *event);
void votes_check_arrived(struct votes_world *world, const struct votes_event *event);
void votes_check_answered(struct votes_world *world, const struct votes_event *event);

/* For all files. */
__attribute__((format(printf, 2, 3))) void votes_violation(struct votes_world *world,
                                                           const char *format, ...);
struct instant votes_now(const struct votes_world *world, const struct votes_host *host);
__attribute__((format(printf, 2, 3))) void votes_trace(const struct votes_world *world,
                                                       const char *format, ...);
void votes_plan(struct votes_world *world, int64_t after_ns, struct votes_event event);
void votes_start_host(struct votes_world *world, int host);
void votes_step(struct votes_world *world, int host, struct election_event event);

#endif
