#ifndef GAVEL_ELECTION_INTERNAL_H
#define GAVEL_ELECTION_INTERNAL_H

/* What the files of the core share; nobody else includes this. */

#include "election/election.h"

/* One step under way: the candidate, what happened, what the host will be told to do. */
struct step {
    struct election *election;
    const struct election_event *event;
    int64_t now_ns;        /* BOOTTIME */
    bool held;             /* a lease ran before this step ... */
    int64_t held_until_ns; /* ... and was good until then, by both clocks */
    bool stalled;          /* woken later than a margin after the moment that was asked for */
    struct election_actions actions;
};

/* Changes the state along the table; a change that is not in it ends the process, since a crash
 * lets the lease lapse, which is safe. The same state only gets the new reason. */
void step_move(struct step *step, enum election_state to, enum election_reason reason);

/* A number below range_ns, from the event's random bytes; 0 when the range is not positive. */
int64_t step_jitter_ns(const struct step *step, int64_t range_ns);

/* Which moments of each third of the ttl are an election's own. */
unsigned pace_slot(uint64_t random);

/* When to ask again, a third of the ttl after `from_ns` at most: at this election's own moments, so
 * that the elections of a process, and the candidates of an election, do not ask all at once. */
int64_t step_paced_ns(const struct step *step, int64_t from_ns);

/* When to try again after an operation that nobody answered. */
int64_t step_backoff_ns(const struct step *step);

/* Our grant's nonce is not used again; remembers it. */
void nonce_end(struct election *election);
bool nonce_is_ours(const struct election *election, const unsigned char *nonce);

/* No lock any more, and none asked for. */
void grant_clear(struct election *election);

/* A grant that is not ours to use, or only perhaps ours: give it back, never with a clean mark. */
void step_give_back(struct step *step);

/* When to try for a lock that was given back: whoever can lead at once goes first. */
int64_t step_soon_ns(const struct step *step, bool clean);

/* The wait for an older lease has ended. */
bool grant_wait_is_over(const struct election *election, int64_t now_ns);
/* BOOTTIME at which the wait of this grant ends. */
int64_t grant_wait_end_ns(const struct election *election);

/* The answers to operations (replies.c). */
void step_acquired(struct step *step);
void step_renewed(struct step *step);
void step_released(struct step *step);
void step_lost(struct step *step);

/* Giving leadership away (leaving.c). */
void step_leave(struct step *step, enum election_leaving kind, enum election_reason reason);
void step_leaving_progress(struct step *step);
/* P4: whatever was promised to readers has run out, or they are known to have stopped. */
bool leaving_may_release(const struct election *election, int64_t now_ns);
/* ... by time alone; NEVER_NS: not. */
int64_t leaving_release_at_ns(const struct election *election);

/* The attached application (attached.c). */
void step_app(struct step *step);
/* It joins a grant that leads, and is told to stop when that is over. */
void step_app_progress(struct step *step);
/* It may still work under an earlier grant. */
bool app_may_be_at_work(const struct election *election, int64_t now_ns);
/* Whether this candidate may try for the lock at all. */
bool app_stands(const struct election *election, int64_t now_ns);
/* From when on the lock may be given back, as far as the application goes; NEVER_NS: not yet. */
int64_t app_release_at_ns(const struct election *election);

/* Composes view.holder from a NO (holder.c). */
void step_holder(struct step *step, const struct store_reply *reply);
/* Since when the lock has been held, as the reply tells; 0: it does not, or nobody could read it.
 */
int64_t reply_held_since_ms(const struct store_reply *reply);

#endif
