#ifndef GAVEL_SIM_WORLD_H
#define GAVEL_SIM_WORLD_H

#include "queue.h"
#include "rng.h"
#include "schedule.h"
#include "stats.h"

/*
 * One schedule: hosts, their clocks and processes, one store, a network, readers, and true time,
 * which nobody in it can read. Everything follows from the seed.
 */

#define HOSTS_MOST 4
#define PAST_MOST 64 /* copies of the store's data that replicas and snapshots are made of */
#define VALIDITIES_MOST 32
#define TOKENS_MOST 256
#define SESSIONS_MOST 64 /* connections that the server still knows of */

/* What kind of store it is. */
enum store_kind {
    KIND_LEASE,   /* a key that expires: Redis */
    KIND_SESSION, /* a lock that goes with its connection, and a row beside it: PostgreSQL */
    KIND_KERNEL,  /* a lock that goes with its process: the local store */
};

/* A connection as its server sees it. */
struct sim_session {
    unsigned id;        /* 0: none */
    int64_t expires_ms; /* the server's clock at which it ends if nothing comes; negative: never */
};

/* What the checks know of the grant that a process holds, from its requests and replies alone. */
struct grant_book {
    bool known;
    bool dead; /* its BOOTTIME deadline has passed, or the store said no */
    unsigned char nonce[NONCE_BYTES];
    uint64_t token;
    int64_t boot_deadline_ns;
    int64_t real_deadline_ns;
    int64_t doubted_ns; /* BOOTTIME at which REALTIME was found run out; 0: not */
    int64_t sent_ns;    /* BOOTTIME of the newest request that was confirmed */
    int64_t sent_at_ns; /* the same in true time */
};

/* The application that is attached to a host's process, or will be. */
struct sim_app {
    bool exists;
    bool joined; /* is attached, or was */
    bool owes;   /* has to say that it is done before the lock may be given back */
    int habit;
    unsigned life;
    uint64_t told; /* the token that it was told to stop working under */
    uint64_t last_token;
    uint64_t token; /* works under this; 0: does not work */
    unsigned char nonce[NONCE_BYTES];
    int64_t until_ns; /* true time: its validity */
};

/* What a process knows of its lock's connection. */
struct sim_seat {
    unsigned session; /* 0: none */
    bool held, minted;
    unsigned char nonce[NONCE_BYTES];
    uint64_t token;
    enum prior prior;
    enum prior_doubt doubt;
    int64_t longest_ttl_ns;
    int64_t arrives_ns, answered_ns; /* true time; what a connection carries stays in order */
    int64_t silent_since_ns; /* BOOTTIME of the oldest message that had no answer; 0: none */
};

/* What a process has heard of it. */
struct app_known {
    bool required, attached, silent, unhealthy;
};

struct host {
    int index;
    struct sim_clock boot;
    struct sim_clock real;
    struct election_config config;
    int64_t read_every_ns;
    char identity[16];

    /* the process */
    bool running;
    bool draining;
    bool readers_stopped;
    unsigned epoch;
    struct election election;
    struct view published;
    struct handouts handouts;
    uint64_t timer;
    int64_t ticks_since_ns;
    int ticks;
    struct grant_book book;
    bool waited; /* the grant at hand has been pending */
    struct sim_app app;
    struct app_known app_known;
    struct sim_seat seat;

    /* the operation under way */
    enum election_op op;
    uint64_t op_number;
    struct instant op_sent;
    int64_t op_sent_at_ns; /* true time */
    struct lock_request op_request;

    /* faults, in true time */
    int64_t paused_until_ns;
    int64_t vm_paused_at_ns; /* 0: not */
    int64_t vm_resumed_ns;   /* BOOTTIME at which the last VM pause ended */
    int64_t real_back_ns;    /* the last backward step of REALTIME */
    int64_t cut_until_ns;
    int64_t deaf_until_ns;
    int64_t repeat_release_ns; /* the next release arrives once more, so much later; 0: no */
    int64_t repeat_acquire_ns;
    int64_t slow_acquire_ns; /* acquires take so long on their way; 0: no */
    int64_t measured_ns;     /* when it last had a quick reply of the store: it knows the clock */
    int64_t renewed_ns;      /* when the store last carried out a renewal of it */
};

/* A promise to a reader that may still run. */
struct validity {
    int host;
    unsigned epoch;
    bool app; /* the attached application's: ends when that is done */
    unsigned char nonce[NONCE_BYTES];
    int64_t end_ns; /* true time */
};

struct minted {
    uint64_t token;
    unsigned order; /* of issue */
    unsigned char nonce[NONCE_BYTES];
    uint64_t clock_ms; /* the server's, then */
    uint64_t recorded; /* the record's token before */
    int64_t at_ns;
    bool excused; /* it may be lower than an older one */
};

struct published_token {
    uint64_t token;
    unsigned order;
    unsigned char nonce[NONCE_BYTES];
};

struct store_copy {
    int64_t at_ns;
    struct lock_key key;
    struct lock_record record;
    struct server_id server;
};

struct network {
    int64_t least_ns, most_ns;                                   /* the usual way, one direction */
    int slow, late, lose_request, lose_reply, repeat, wake_lost; /* per mille */
};

/* What a seed decides at its start. */
struct plan {
    enum store_kind kind;
    int hosts;
    bool efficiency;
    bool apps; /* applications are attached */
    bool calm; /* no faults at all: leadership must not be interrupted */
    int64_t ttl_most_ns;
    int64_t wait_ns; /* W of all hosts */
    int64_t margin_least_ns, margin_most_ns;
    int64_t chaos_until_ns;
    int64_t end_ns;
    int64_t fault_every_ns; /* on average; 0: none */
    int scenario_permille;  /* how often a fault is a whole scenario */
    int favourite;          /* the scenario that this seed prefers; negative: any */
};

/* Where a scenario stands. One at a time. */
struct scenario {
    bool busy;
    int tries;
    int leader;
    int other;
    int kind;
    struct store_copy copy;
};

/* Something outside that refuses a token lower than one it has seen. */
struct resource {
    uint64_t token;
    unsigned order; /* of the token's issue */
};

struct world {
    const struct schedule *schedule;
    struct rng rng;
    struct rng app_rng; /* of the applications alone */
    struct rng tape;    /* of the faults, where there is one */
    struct stats *stats;
    struct plan plan;
    struct network network;
    struct queue queue;
    int64_t now_ns;
    unsigned at_once; /* how many messages have come at this moment */

    struct host hosts[HOSTS_MOST];
    uint64_t operations;

    struct model_store store;
    int64_t store_down_until_ns;
    int64_t store_replica_until_ns;
    unsigned servers; /* identities given so far */
    struct sim_session sessions[SESSIONS_MOST];
    unsigned session_count;
    struct resource resource;
    int64_t store_stepped_ns;
    int64_t
        store_disturbed_ns; /* when something but a request last changed the data or the clock */
    int64_t no_start_until_ns;
    struct store_copy past[PAST_MOST];
    unsigned past_count;
    struct scenario scenario;

    /* what the checks know */
    struct validity validities[VALIDITIES_MOST];
    int validity_count;
    struct minted minted[TOKENS_MOST];
    unsigned minted_count;
    uint64_t greatest_token;
    struct published_token tokens[TOKENS_MOST];
    unsigned token_count;
    int last_leader;
    int64_t first_lead_ns;
    int64_t last_lead_ns;
    uint64_t samples, led_samples;
    unsigned faults, app_faults; /* that came, left out or not */
    uint64_t digest;             /* of all answers */

    char violation[400]; /* empty: none */
};

/* Plays the schedule to its end or to the first violation. It and the stats outlive the world. */
void world_run(struct world *world, const struct schedule *schedule, struct stats *stats);

/* The same in steps: false when it is over. */
void world_begin(struct world *world, const struct schedule *schedule, struct stats *stats);
bool world_step(struct world *world);
void world_end(struct world *world);

void world_push(struct world *world, const struct message *message);

/* Runs `call` after a delay; `number` is handed on. */
void world_call(struct world *world, int64_t delay_ns,
                void (*call)(struct world *world, const struct message *message), int host,
                uint64_t number);

/* The first violation is kept. */
__attribute__((format(printf, 2, 3))) void world_violation(struct world *world, const char *format,
                                                           ...);

__attribute__((format(printf, 2, 3))) void world_trace(const struct world *world,
                                                       const char *format, ...);

static inline void world_count(struct world *world, enum stat stat) {
    world->stats->counts[stat]++;
}

#endif
