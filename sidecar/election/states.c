#include "election/states.h"

#include "election/reply.h"

static const char *const state_names[STATE_COUNT] = {
    [STATE_UNKNOWN] = "unknown", [STATE_FOLLOWER] = "follower",   [STATE_PENDING] = "pending",
    [STATE_LEADER] = "leader",   [STATE_RESIGNING] = "resigning",
};

static const char *const reason_names[REASON_COUNT] = {
    [REASON_STARTING] = "starting",
    [REASON_ACQUIRED] = "acquired",
    [REASON_RENEWED] = "renewed",
    [REASON_HELD_BY_OTHER] = "held-by-other",
    [REASON_WAITING_FOR_OLD_LEASE] = "waiting-for-old-lease",
    [REASON_RENEWAL_REFUSED] = "renewal-refused",
    [REASON_FOREIGN_VALUE] = "foreign-value",
    [REASON_DEADLINE] = "deadline",
    [REASON_STORE_UNREACHABLE] = "store-unreachable",
    [REASON_STORE_REFUSED] = "store-refused",
    [REASON_RESIGNED] = "resigned",
    [REASON_APP_GONE] = "app-gone",
    [REASON_APP_HUNG] = "app-hung",
    [REASON_APP_UNHEALTHY] = "app-unhealthy",
    [REASON_DRAINING] = "draining",
    [REASON_CLOCK_STEP] = "clock-step",
    [REASON_PAUSED] = "paused",
};

static const char *const doubt_texts[DOUBT_COUNT] = {
    [DOUBT_NONE] = "",
    [DOUBT_NO_RECORD] = "the store has no full record of how the last lease ended",
    [DOUBT_OTHER_SERVER] = "the record was written by another server, or before a restart",
    [DOUBT_UNKNOWN_SERVER] = "the server does not say who it is, so its record proves nothing",
    [DOUBT_TOKEN_BEHIND] = "the record is older than a token that was seen before",
    [DOUBT_END_AHEAD] = "the last lease went away before its recorded end",
    [DOUBT_CLOCK] = "the store's clock has not been watched for long enough, or it stepped",
    [DOUBT_UNCLEAN] = "the last holder did not say that it had stopped",
};

static const char *const warning_names[WARNING_COUNT] = {
    "identity-not-unique", "local-store-in-a-pod", "store-replicated-async",
    "eviction-policy",     "even-nodes",           "node-list-differs",
    "listener-exposed",    "key-without-expiry",   "overlap-possible",
};

static const char *const safety_names[FAILOVER_COUNT] = {
    [FAILOVER_NONE] = "none",
    [FAILOVER_ASYNCHRONOUS] = "asynchronous",
    [FAILOVER_ACKNOWLEDGED] = "acknowledged",
    [FAILOVER_SYNCHRONOUS] = "synchronous",
};

const char *election_state_name(enum election_state state) {
    return (unsigned)state < STATE_COUNT ? state_names[state] : "";
}

const char *election_reason_name(enum election_reason reason) {
    return (unsigned)reason < REASON_COUNT ? reason_names[reason] : "";
}

const char *prior_doubt_text(enum prior_doubt doubt) {
    return (unsigned)doubt < DOUBT_COUNT ? doubt_texts[doubt] : "";
}

const char *warning_name(unsigned bit_index) {
    return bit_index < WARNING_COUNT ? warning_names[bit_index] : "";
}

const char *failover_safety_name(enum failover_safety safety) {
    return (unsigned)safety < FAILOVER_COUNT ? safety_names[safety] : NULL;
}

const struct election_transition election_transitions[] = {
    {STATE_UNKNOWN, STATE_FOLLOWER, "the store answers: the lock is another's, or free"},
    {STATE_UNKNOWN, STATE_PENDING, "took the lock, waits out an older lease"},
    {STATE_UNKNOWN, STATE_LEADER, "took the lock, or the same lease was confirmed again"},
    {STATE_UNKNOWN, STATE_RESIGNING, "gives back a lock that it could not vouch for any more"},
    {STATE_FOLLOWER, STATE_UNKNOWN, "no word from the store for a whole ttl"},
    {STATE_FOLLOWER, STATE_PENDING, "took the lock, waits out an older lease"},
    {STATE_FOLLOWER, STATE_LEADER, "took the lock, no older lease can still be trusted"},
    {STATE_PENDING, STATE_LEADER, "waited long enough, and the lock was still ours after that"},
    {STATE_PENDING, STATE_FOLLOWER, "the store says that the lock is gone"},
    {STATE_PENDING, STATE_UNKNOWN, "could not renew in time"},
    {STATE_PENDING, STATE_RESIGNING, "asked to give the lock back before it led"},
    {STATE_LEADER, STATE_FOLLOWER, "the store says that the lock is gone"},
    {STATE_LEADER, STATE_UNKNOWN, "could not renew in time, or a clock says so"},
    {STATE_LEADER, STATE_RESIGNING, "asked to give leadership away"},
    {STATE_RESIGNING, STATE_FOLLOWER, "the lock is given back, or its lease has run out"},
    {STATE_RESIGNING, STATE_UNKNOWN, "the lease has run out, and the store is silent"},
};

const size_t election_transition_count =
    sizeof election_transitions / sizeof election_transitions[0];

const struct election_transition *election_transition_find(enum election_state from,
                                                           enum election_state to) {
    for (size_t i = 0; i < election_transition_count; i++) {
        if (election_transitions[i].from == from && election_transitions[i].to == to) {
            return &election_transitions[i];
        }
    }
    return (const struct election_transition *)0;
}
