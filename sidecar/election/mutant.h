#ifndef GAVEL_ELECTION_MUTANT_H
#define GAVEL_ELECTION_MUTANT_H

/*
 * Faults that can be planted to test the simulator: it has to find each of them. In the library
 * that is shipped MUTANT() is 0 and nothing of this remains.
 */
#ifdef GAVEL_MUTANTS
enum mutant {
    MUTANT_NO_FAULT,
    MUTANT_CACHED_FLAG,             /* an answer looks at the state only, not at the clock */
    MUTANT_RELEASE_BEFORE_PUBLISH,  /* the lock is given back before readers hear of it */
    MUTANT_RELEASE_WHILE_VALID,     /* the lock is given back while a validity still runs */
    MUTANT_DEADLINE_FROM_REPLY,     /* the lease is counted from the reply, not from the send */
    MUTANT_NO_DELAY,                /* a grant leads at once, whatever came before */
    MUTANT_END_ALWAYS_TRUSTED,      /* "end" is believed without looking at the recorded end */
    MUTANT_NO_HELD_SEEN,            /* ... without comparing it with a lease that was seen held */
    MUTANT_NO_VOUCH,                /* ... without vouching for the clock */
    MUTANT_NO_RENEWAL_AFTER_WAIT,   /* a grant leads when its wait ends, without a renewal */
    MUTANT_WAIT_OWN_TTL,            /* the wait is one's own ttl, whatever others use */
    MUTANT_CLEAN_ALWAYS,            /* every release writes the clean mark */
    MUTANT_NONCE_REUSED,            /* one nonce for all grants of a process */
    MUTANT_SEEN_TOKEN_FORGOTTEN,    /* the largest token seen is not told to the store */
    MUTANT_REAL_IGNORED,            /* CLOCK_REALTIME does not shorten the lease */
    MUTANT_NO_LATCH,                /* REALTIME run out is forgotten when it steps back */
    MUTANT_WAIT_FROM_SEND,          /* the wait is counted from the request, not from the reply */
    MUTANT_LATCH_ANY_YES,           /* after a doubt any yes will do, whoever says it */
    MUTANT_APP_RELEASE_BEFORE_DONE, /* the lock is given back under an attached application */
    MUTANT_APP_LEAD_BEFORE_DONE,    /* a grant is taken while it works under the last one */
    MUTANT_APP_DRAIN_RELEASES,      /* the end of a drain releases, although it is not done */
    MUTANT_APP_SILENT_IS_DONE,      /* a missed beat, or a cut connection, is taken for a stop */
    MUTANT_APP_GONE_STAYS,          /* its end is no reason to resign */
    MUTANT_APP_STANDS_ALONE,        /* stands although no application is attached, or healthy */
    MUTANT_APP_DONE_ANY,            /* "done" with an older token counts too */
    MUTANT_QUORUM_NO_WAIT,          /* a node that proves nothing counts at once */
    MUTANT_QUORUM_NO_WRITE_BACK,    /* the greatest token is not written to a majority */
    MUTANT_QUORUM_SENT_LATEST,      /* the lease is the latest node's, not the majority-th's */
    MUTANT_QUORUM_NAMES_VOTE,       /* two names of one server are two votes */
    MUTANT_QUORUM_ANY_LIST,         /* leads under a list that is too different from another's */
    MUTANT_QUORUM_MARK_ANY,         /* a release marks nodes on which the grant did not count */
    MUTANT_QUORUM_LATE_PROVES,      /* a late yes passes its proof on, whatever came of the grant */
    /* planted in the model store, not in the core */
    MUTANT_STORE_NO_SERVER_CHECK,  /* the record's server identity is not compared */
    MUTANT_STORE_NO_REPLID,        /* ... without the replication id */
    MUTANT_STORE_NO_TOKEN_CHECK,   /* the record's token is not compared with the one seen */
    MUTANT_STORE_NO_KEPT_ANSWER,   /* a retry is judged anew, against its own grant's record */
    MUTANT_STORE_RENEW_CREATES,    /* a renewal creates the key when it is missing */
    MUTANT_STORE_RELEASE_ANY,      /* a release deletes whatever is there */
    MUTANT_STORE_TOKEN_NOT_RAISED, /* a token is the record's plus one only */
    MUTANT_STORE_RELEASE_ENDS,     /* a release without the mark moves the recorded end to now */
    MUTANT_STORE_END_SHORT,        /* a grant's recorded end is its own ttl, whatever came before */
    /* ... in the model of a lock that goes with its connection */
    MUTANT_SESSION_NO_GRACE,   /* the row's missing mark is not looked at */
    MUTANT_SESSION_ANY_SERVER, /* ... or whose it is */
    MUTANT_SESSION_MARK_STAYS, /* a new grant leaves the mark of the last one */
    MUTANT_SESSION_MARK_ANY,   /* the mark is set whatever the row says */
    MUTANT_RESOURCE_OPEN,      /* what is outside does not compare tokens */
    MUTANT_COUNT
};
extern enum mutant mutant_active;
#define MUTANT(name) (mutant_active == MUTANT_##name)
#else
#define MUTANT(name) 0
#endif

#endif
