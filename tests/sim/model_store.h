#ifndef GAVEL_SIM_MODEL_STORE_H
#define GAVEL_SIM_MODEL_STORE_H

#include "clocks.h"
#include "election/election.h"

/*
 * One lock on one server, as a plain struct: what the scripts of the Redis store do, without the
 * wire. Knows nothing of hosts, networks or faults; the world sets its clock and changes its data.
 */

/* run_id and master_replid; 0:0 is a server that does not say who it is. */
struct server_id {
    unsigned run;
    unsigned repl;
};

struct lock_key {
    bool present;
    unsigned char nonce[NONCE_BYTES];
    int host;
    uint64_t token;
    int64_t ttl_ns;
    unsigned session;   /* the connection that it goes with; 0: none */
    int64_t expires_ms; /* the server's clock; negative: never */
};

struct lock_record {
    bool present;
    bool complete;
    bool clean; /* released by a holder that said that it had stopped */
    uint64_t token;
    int64_t end_us; /* the server's clock at which the last lease ends */
    int64_t ttl_ns; /* the longest in use */
    struct server_id server;
    unsigned nodes; /* the list it was written under, a bit each; 0: none */
    unsigned char nonce[NONCE_BYTES];
    enum prior kept; /* the answer that this grant was given */
};

struct model_store {
    struct sim_clock clock; /* the server's CLOCK_REALTIME */
    struct server_id server;
    struct lock_key key;
    struct lock_record record;
};

struct lock_request {
    enum election_op op;
    int host;
    unsigned char nonce[NONCE_BYTES];
    int64_t ttl_ns;
    int64_t wait_ns; /* W, as the candidate knows it */
    uint64_t seen_token;
    uint64_t token;             /* release: the grant's */
    uint64_t least;             /* of a node among several: the least token, also when made anew */
    unsigned nodes;             /* of a node among several: all of them, a bit each; 0: alone */
    char server[SERVER_ID_MAX]; /* release: whom the grant was last confirmed by */
    bool take;
    bool raise_token;
    bool clean;
    int stage;        /* of an operation that is several messages */
    unsigned session; /* the connection that it comes over */
};

struct lock_result {
    struct store_reply reply; /* all but `sent` */
    bool granted;             /* a new grant: the key was not there */
    bool minted;              /* a token was issued */
    uint64_t recorded_token;  /* what the record said before */
    bool released;
    int apart;  /* how many nodes the list of a lease or of an unexpired record differs by */
    bool clean; /* released with the clean mark */
};

/* A key whose time is over is removed here, as Redis does when it is touched. */
void model_store_expire(struct model_store *store, int64_t true_ns);

void model_store_apply(struct model_store *store, const struct lock_request *request,
                       int64_t true_ns, struct lock_result *result);

/* Who the server says that it is. */
void model_store_name_server(const struct model_store *store, char text[SERVER_ID_MAX]);

/* The server's clock. */
int64_t model_store_now_us(const struct model_store *store, int64_t true_ns);

/* The true moment at which the key goes; INT64_MAX: never. The key is there. */
int64_t model_store_key_end(const struct model_store *store);

#endif
