#ifndef GAVEL_ELECTION_STATES_H
#define GAVEL_ELECTION_STATES_H

#include <stdbool.h>
#include <stddef.h>

/* What a candidate is to its readers. The names are a stable interface. */
enum election_state {
    STATE_UNKNOWN,   /* no word from the store yet, or lately */
    STATE_FOLLOWER,  /* another holds the lock, or nobody that we know of */
    STATE_PENDING,   /* holds the lock, waits out a lease that may still be trusted */
    STATE_LEADER,    /* leads while the clock says so */
    STATE_RESIGNING, /* no longer leads, has not given the lock back */
};
#define STATE_COUNT 5

/* Why it is in that state. The names are a stable interface. */
enum election_reason {
    REASON_STARTING,
    REASON_ACQUIRED,
    REASON_RENEWED,
    REASON_HELD_BY_OTHER,
    REASON_WAITING_FOR_OLD_LEASE,
    REASON_RENEWAL_REFUSED,
    REASON_FOREIGN_VALUE,
    REASON_DEADLINE,
    REASON_STORE_UNREACHABLE,
    REASON_STORE_REFUSED,
    REASON_RESIGNED,
    REASON_APP_GONE,
    REASON_APP_HUNG,
    REASON_APP_UNHEALTHY,
    REASON_DRAINING,
    REASON_CLOCK_STEP,
    REASON_PAUSED,
};
#define REASON_COUNT 17

/* Why a grant has to wait before it leads. */
enum prior_doubt {
    DOUBT_NONE,
    DOUBT_NO_RECORD,      /* the store remembers no earlier lease, or not all of it */
    DOUBT_OTHER_SERVER,   /* the record was written by another server, or before a restart */
    DOUBT_UNKNOWN_SERVER, /* the server does not say who it is */
    DOUBT_TOKEN_BEHIND,   /* the record is older than a token seen before */
    DOUBT_END_AHEAD,      /* the last lease should still run: its key went away early */
    DOUBT_CLOCK,   /* the store's clock has not been watched for long enough, or it stepped */
    DOUBT_UNCLEAN, /* the last holder did not say that it had stopped */
};
#define DOUBT_COUNT 8

/* "leader", "held-by-other"; static strings. */
const char *election_state_name(enum election_state state);
const char *election_reason_name(enum election_reason reason);
/* A sentence for people: why an older lease may still be trusted. */
const char *prior_doubt_text(enum prior_doubt doubt);

/* One legal change of state, with words for an operator. */
struct election_transition {
    enum election_state from;
    enum election_state to;
    const char *comment;
};

extern const struct election_transition election_transitions[];
extern const size_t election_transition_count;

/* NULL when the table does not allow the change. */
const struct election_transition *election_transition_find(enum election_state from,
                                                           enum election_state to);

#endif
