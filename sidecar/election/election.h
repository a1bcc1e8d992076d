#ifndef GAVEL_ELECTION_ELECTION_H
#define GAVEL_ELECTION_ELECTION_H

#include "election/proof.h"
#include "election/view.h"

#define RANDOM_BYTES 24                     /* a nonce and eight more for jitter */
#define ENDED_NONCES 8                      /* how many of our own ended grants are remembered */
#define ELECTION_SLOTS 64                   /* of a third of the ttl: those in one ask together */
#define TOKEN_MAX UINT64_C(100000000000000) /* 10^14: exact in a double and in Lua's %.14g */

/* Settings of one election; times in nanoseconds. Checked by the configuration, not here. */
struct election_config {
    int64_t ttl_ns;
    int64_t margin_ns;
    int64_t wait_floor_ns; /* --wait */
    int64_t valid_for_ns;
    int64_t drain_ns;     /* how long a drain may take */
    bool drain_none;      /* release at once: the application is known to have stopped */
    bool efficiency;      /* leads at once, an overlap is acceptable */
    bool step_down;       /* the first renewal that is not answered ends the lease */
    bool require_app;     /* stands only while an application is attached */
    bool app_check;       /* stands only while the application answers; at first it does not */
    bool one_pace;        /* the elections of a process ask together, the store makes one of it */
    int64_t poll_ns;      /* the longest sleep of a follower; 0: ttl/3 */
    const char *identity; /* ours, as others may show it; never decides anything */
};

enum election_op { OP_NONE, OP_ACQUIRE, OP_RENEW, OP_RELEASE };

enum election_event_type {
    EVENT_TICK,     /* the wake-up that was asked for, or any other moment */
    EVENT_ACQUIRED, /* the answer to an acquire */
    EVENT_RENEWED,
    EVENT_RELEASED,
    EVENT_WAKE,   /* the store says that the lock was given back */
    EVENT_LOST,   /* the store knows that our lock is gone */
    EVENT_RESIGN, /* an operator asks to give leadership away, the process stays */
    EVENT_DRAIN,  /* the process is asked to end */
    EVENT_APP,    /* something about the application, enum app_event */
};

/* What becomes of the application that leadership is tied to. */
enum app_event {
    APP_ATTACHED,
    APP_GONE,    /* it ended the attachment: it has stopped */
    APP_CUT,     /* the sidecar ended the attachment: nobody knows */
    APP_HUNG,    /* it has missed its beat: nobody knows */
    APP_BEATS,   /* ... and is heard of again */
    APP_DONE,    /* it has stopped working under `token` */
    APP_RESIGNS, /* it has stopped, and gives leadership away */
    APP_HEALTHY, /* it answers the check */
    APP_UNHEALTHY,
};

/* One input, with its time in it. */
struct election_event {
    enum election_event_type type;
    struct instant now;
    struct handouts handouts;           /* as of now */
    unsigned char random[RANDOM_BYTES]; /* fresh for every event */
    struct store_reply reply;           /* ACQUIRED, RENEWED, RELEASED, LOST */
    bool clean;                         /* WAKE: released with the clean mark */
    enum app_event app;                 /* APP */
    uint64_t token;                     /* APP_DONE */
};

/* What the host has to do, in this order: publish, then the operation. */
struct election_actions {
    bool changed; /* state, holder or token changed: tell those who watch */
    enum election_op op;
    unsigned char nonce[NONCE_BYTES]; /* of the operation */
    uint64_t seen_token; /* the largest token ever seen; acquire, and renew with raise_token */
    int64_t wait_ns;     /* acquire, renew: W, how long an older lease may still be trusted */
    bool take;           /* acquire: false only looks, and must not take the lock */
    bool raise_token;    /* renew: mint the token anew, by the one rule */
    bool clean;          /* release: write the clean mark */
    uint64_t token;      /* release: the grant's; a record with another gets no mark */
    char server[SERVER_ID_MAX]; /* release: who confirmed the grant last; another gets no mark */
    bool resigned;              /* a resignation is complete */
    bool finished;              /* drained: the process may end */
    bool left_to_lapse;         /* finished without releasing: the lease runs out by itself */
    bool revoke;                /* tell the attached application to stop ... */
    uint64_t revoke_token;      /* ... working under this token ... */
    int64_t revoke_by_ns;       /* ... by this moment of BOOTTIME; now or before: at once */
    bool app_stopped;           /* forget handouts.app_until_ns: it ended with the application */
    int64_t wake_ns;            /* BOOTTIME of the next EVENT_TICK; NEVER_NS: none needed */
};

enum election_grant {
    GRANT_NONE,      /* nothing asked for */
    GRANT_ASKED,     /* an acquire is under way, or its answer was lost: perhaps ours */
    GRANT_HELD,      /* the store said yes, the lease runs */
    GRANT_RETURNING, /* over for us, to be given back */
};

enum election_leaving { LEAVING_NO, LEAVING_STEP_DOWN, LEAVING_RESIGN, LEAVING_EXIT };

/* The candidate. The caller's memory; no pointers but to the settings, nothing to free. */
struct election {
    const struct election_config *config;
    struct view view;

    enum election_op op; /* the one operation under way */
    bool op_raises;      /* it is a renewal that mints the token anew */
    bool op_takes;       /* it is an acquire that may take the lock */

    enum election_grant grant;
    unsigned char nonce[NONCE_BYTES];
    bool waits;            /* an older lease may still be trusted, until the wait is over */
    int64_t wait_from_ns;  /* arrival of the reply that confirmed the grant */
    int64_t wait_until_ns; /* not before this moment either: the store's own word */
    char grant_server[SERVER_ID_MAX]; /* who confirmed it last */

    enum election_leaving leaving;
    int64_t leave_by_ns; /* a drain's end */
    int64_t stand_back_until_ns;
    bool stands_back; /* ... when this resignation is complete */
    bool unproven;    /* the application was not waited for: no mark for this grant */

    bool app_required; /* stands only while an application is attached */
    bool app_attached;
    bool app_hung;
    bool app_unhealthy;
    bool app_silent;      /* it was hung while it worked under app_token */
    bool app_cut;         /* whoever works under app_token is no longer attached */
    bool app_revoked;     /* told to stop by app_stop_ns */
    uint64_t app_token;   /* an application may work under this grant; 0: none does */
    int64_t app_until_ns; /* ... for as long as this: its validity */
    int64_t app_stop_ns;

    unsigned pace_slot;  /* which moments of each third of the ttl are its own */
    int64_t next_op_ns;  /* when the next operation is due */
    int64_t op_given_ns; /* when the newest one was handed to the store */
    bool wake_missed;    /* WAKE came while an acquire was under way */
    bool wake_clean;     /* ... and it told of a clean mark */
    bool refused;        /* for its settings: no release changes that, and candidates like it would
                          * wake each other for ever */
    unsigned failures;   /* in a row */

    uint64_t seen_token;
    int64_t longest_ttl_ns;
    int64_t last_word_ns;  /* BOOTTIME of the last definite answer; 0: none */
    int64_t twin_since_ns; /* since when another holder has our identity; 0: none */
    struct proof proof;
    bool clockless; /* the store's answers tell no time: nobody can vouch for its clock */

    unsigned char ended[ENDED_NONCES][NONCE_BYTES];
    unsigned ended_count;

    int64_t wake_ns; /* as last asked for */
    int64_t handed_out_until_ns;
};

/*
 * Starts a candidate: `unknown`, first acquire due at once. `first_index` is where the view's
 * index starts (random, so that an index of an earlier process never matches); modulo
 * ELECTION_SLOTS it decides when this election asks.
 */
void election_init(struct election *election, const struct election_config *config,
                   uint64_t first_index, struct instant now);

/*
 * The one step: an event with its time in, actions and the next deadline out. Never fails, never
 * calls out. At most one operation is under way at a time; its answer must come back exactly once,
 * as the event of the same kind.
 */
struct election_actions election_step(struct election *election,
                                      const struct election_event *event);

/* The time an operation may take: ttl/6, at most 2 s. */
int64_t election_attempt_ns(const struct election_config *config);

/* W: how long an older lease may still be trusted. The largest ttl known, `--wait` at least. */
int64_t election_wait_ns(const struct election *election);

#endif
