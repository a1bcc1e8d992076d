#ifndef GAVEL_TESTS_CONTRACT_H
#define GAVEL_TESTS_CONTRACT_H

#include "store/store.h"

/*
 * What the contract suite has to know of a store to run against it. A new store is one file that
 * defines `contract_subject` and one line in CMakeLists.txt:
 *
 *     gavel_contract(redis subject_redis.c gavel_store_redis)
 *
 * Each subject is a program of its own, `contract_NAME`. Every test works in a namespace of its
 * own, so one place (a server, a folder) serves them all.
 */

/* The place that the subject made. */
struct contract_space {
    char url[512];
    struct store_secrets secrets;
    struct store_tls tls;
    unsigned wait_replicas;
    uv_loop_t *loop; /* of the test that runs; set by the suite */
    void *data;      /* the subject's own */
};

struct contract_subject {
    const char *name;
    const struct store_ops *ops;

    /* Once a program: makes an empty place and fills in url, and secrets if it has any. False: it
     * cannot be made here (a missing program); `why` says so, and the suite is skipped, loudly. */
    bool (*start)(struct contract_space *space, char *why, size_t why_size);
    void (*stop)(struct contract_space *space);

    /* Until thaw no request is answered, and none fails at once: a hung server, a hung disk.
     * Stores are open and idle, or closed, when freeze is called. NULL: cannot be done. */
    void (*freeze)(struct contract_space *space);
    void (*thaw)(struct contract_space *space);

    bool wakes;          /* a clean release gives the others a WAKE */
    bool expires;        /* a lock that is not renewed is free after its ttl */
    bool frees_on_close; /* closing the store frees its locks */
    bool tells_since;    /* its record has the time of the grant */
};

extern const struct contract_subject contract_subject;

/* The groups of tests; each returns how many failed. */
int contract_locking(void);
int contract_priors(void);
int contract_tokens(void);
int contract_lifecycle(void);
int contract_timeouts(void);

#endif
