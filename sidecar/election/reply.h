#ifndef GAVEL_ELECTION_REPLY_H
#define GAVEL_ELECTION_REPLY_H

#include "election/instant.h"
#include "election/states.h"
#include "election/vouch.h"

#include <stdbool.h>
#include <stdint.h>

#define NONCE_BYTES 16
#define IDENTITY_MAX 128 /* characters, without the end */
/* "IDENTITY~NONCE" is the longest holder that is shown. */
#define HOLDER_MAX (IDENTITY_MAX + 1 + 2 * NONCE_BYTES + 1)

enum outcome {
    OUTCOME_UNSURE, /* nobody knows what happened: an error, a timeout, a strange reply */
    OUTCOME_YES,
    OUTCOME_NO, /* the store's own word */
};

/* How the lease before this grant ended, as the store's record tells. */
enum prior {
    PRIOR_NONE,  /* it proves nothing */
    PRIOR_END,   /* it ended by running out, at prior_end_us of the store's clock */
    PRIOR_CLEAN, /* its holder said that it had stopped */
};

/* Bits of what deserves a warning; the names are a stable interface. */
enum warning {
    WARNING_IDENTITY_NOT_UNIQUE = 1 << 0,
    WARNING_LOCAL_STORE_IN_A_POD = 1 << 1,
    WARNING_STORE_REPLICATED_ASYNC = 1 << 2,
    WARNING_EVICTION_POLICY = 1 << 3,
    WARNING_EVEN_NODES = 1 << 4,
    WARNING_NODE_LIST_DIFFERS = 1 << 5,
    WARNING_LISTENER_EXPOSED = 1 << 6,
    WARNING_KEY_WITHOUT_EXPIRY = 1 << 7,
    WARNING_OVERLAP_POSSIBLE = 1 << 8,
};
#define WARNING_COUNT 9
/* "identity-not-unique" for bit 0, and so on; static strings. */
const char *warning_name(unsigned bit_index);

/* What a failover of the store can cost; the names are a stable interface. */
enum failover_safety {
    FAILOVER_UNKNOWN,      /* not known, or there is none: shown as null */
    FAILOVER_NONE,         /* one server, to which no other listens */
    FAILOVER_ASYNCHRONOUS, /* what was granted last may be lost: tokens alone tell leaders apart */
    FAILOVER_ACKNOWLEDGED, /* so many replicas as were asked for have it */
    FAILOVER_SYNCHRONOUS,  /* a synchronous standby has it, by the answer itself */
    FAILOVER_COUNT
};
/* "none"; NULL for FAILOVER_UNKNOWN. Static. */
const char *failover_safety_name(enum failover_safety safety);

/*
 * What a store answered to one request, in the words that all stores share. Zeroed fields mean
 * "not known". Plain data, nothing to free.
 */
struct store_reply {
    enum outcome outcome;
    enum election_reason reason; /* of a NO or UNSURE: why */
    struct instant sent;         /* read before the first byte of the request could leave */

    /* What the record says; valid for YES and NO alike. */
    uint64_t token;             /* YES: the grant's token. NO: the largest the store remembers */
    int64_t longest_ttl_ns;     /* the longest ttl that the record knows */
    int64_t server_now_us;      /* the store's clock while it answered; 0: has none */
    char server[SERVER_ID_MAX]; /* whose clock and record that is; empty: unknown */
    uint32_t warnings;          /* enum warning, as of this reply */
    enum failover_safety safety;

    /* YES: since when the grant has been ours. NO and held: since when it has been the holder's.
     * Milliseconds of 1970 by the clock of whoever wrote it down; 0: not known. For people. */
    int64_t held_since_ms;

    /* YES to an acquire: how the lease before ended. */
    enum prior prior;
    enum prior_doubt doubt; /* why prior is not better */
    int64_t prior_end_us;   /* PRIOR_END: by the store's clock */

    /* YES: until this moment of BOOTTIME an older lease may be trusted, whatever else is known. A
     * store that judges by itself how leases ended says so with it; 0: nothing to add. */
    int64_t wait_until_ns;
    bool vouched; /* such a store could prove the end of a lease that ran out now */

    /* NO: who holds the lock. */
    bool held; /* false: the lock is free, it was only looked at */
    bool holder_nonce_known;
    unsigned char holder_nonce[NONCE_BYTES];
    int64_t expires_in_ns;         /* until the lock frees itself; negative: unknown */
    char holder[IDENTITY_MAX + 1]; /* "?" when it cannot be shown; empty: unknown */
};

#endif
