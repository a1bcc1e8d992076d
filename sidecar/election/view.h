#ifndef GAVEL_ELECTION_VIEW_H
#define GAVEL_ELECTION_VIEW_H

#include "election/lease.h"
#include "election/reply.h"

/*
 * What readers see of one election: an immutable snapshot, replaced in one step. It never says
 * "leader" by itself; view_answer() does, from the clocks, when it is asked.
 */
struct view {
    enum election_state state;
    enum election_reason reason;
    enum prior_doubt doubt; /* of a pending grant */
    uint64_t token;         /* the grant's; shown only while it leads */
    struct lease lease;
    int64_t valid_for_ns;  /* no answer promises more */
    int64_t wait_until_ns; /* pending: BOOTTIME at which the wait ends */
    int64_t since_real_ns; /* CLOCK_REALTIME of the last change of state */
    int64_t granted_ms;    /* since when we hold the lock, in milliseconds of 1970; 0: we do not */
    int64_t holder_since_ms; /* the same of `holder`; 0: not known */
    int64_t doubt_seen_ns;   /* the newest handouts.doubted_ns that the core has heard of */
    uint64_t index;          /* grows with each change of state, holder or token */
    uint32_t warnings;       /* enum warning */
    enum failover_safety safety;
    char holder[HOLDER_MAX]; /* another's name; empty: unknown. Never our own */
};

/*
 * What has been promised to readers. Lives beside the view, is fed back to the core with every
 * event: a lock is not given away while a validity that was handed out still runs.
 */
struct handouts {
    int64_t until_ns;     /* BOOTTIME, the latest end of any validity handed out */
    int64_t app_until_ns; /* the same for the attached application alone: ends when it is done */
    int64_t doubted_ns;   /* BOOTTIME at which a reader found REALTIME run out; 0: none */
};

struct answer {
    enum election_state state;
    enum election_reason reason;
    bool leader;
    uint64_t token;      /* 0 unless leader */
    int64_t valid_ns;    /* 0 unless leader; whole milliseconds */
    int64_t deadline_ns; /* BOOTTIME, now + valid_ns; 0 unless leader */
};

/* Evaluates the view at `now`, and notes in `handouts` what the answer promises. A view of a
 * leader whose clocks say otherwise answers "unknown". Re-entrant; no clock is read here. */
struct answer view_answer(const struct view *view, struct instant now, struct handouts *handouts);

#endif
