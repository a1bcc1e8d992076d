#ifndef GAVEL_STORE_LOCAL_LOCK_H
#define GAVEL_STORE_LOCAL_LOCK_H

#include "store/local/lock_file.h"
#include "store/store.h"

/*
 * One election's lock and record, as one replica has them. Everything here blocks and runs in the
 * thread pool, one call at a time for each lock: whoever calls owns the lock until it returns.
 */
struct lock {
    const struct place *place;
    const struct store_setup *setup;
    const char *election;

    int fd; /* holds the lock; -1: we do not have it */
    struct lock_file_id id;
    unsigned char nonce[NONCE_BYTES]; /* of the grant */
    uint64_t token;                   /* the grant's */
    uint64_t minted; /* above `token` after a raise that may or may not be in the record */
    int64_t longest_ttl_ns;
    int64_t granted_ms; /* CLOCK_REALTIME */
    enum prior prior;   /* what the grant was told, kept for its retries */
    enum prior_doubt doubt;
};

/* One call and what came of it. */
struct lock_job {
    enum store_event_type type;
    struct store_request request;
    struct store_event event; /* the answer */
    struct lock_file_id seen; /* the lock file, if there was one; else zeroed */
    struct trouble note;      /* for the log: what else was noticed; empty: nothing */
};

void lock_init(struct lock *lock, const struct place *place, const struct store_setup *setup,
               const char *election);

/* Carries out job->request, by job->type. */
void lock_work(struct lock *lock, struct lock_job *job);

/* Gives the lock back if we have it: no mark, no word to anybody. Does not block for long. */
void lock_drop(struct lock *lock);

#endif
