#ifndef GAVEL_TESTS_UNIT_ELECTION_DRIVER_H
#define GAVEL_TESTS_UNIT_ELECTION_DRIVER_H

/*
 * Drives one candidate by hand: keeps both clocks, the store's clock, what was handed out, and the
 * operation under way. After each step it checks what must hold whatever happens. Times are
 * nanoseconds; the caller's memory, nothing to free. A broken rule fails the running cmocka test.
 */

#include "election/election.h"

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS NS_PER_MS
#define S NS_PER_S
#define SERVER_A "run-a:replid-a"
#define SERVER_B "run-b:replid-b"

struct driver {
    struct election_config config; /* change it between driver_config() and driver_start() */
    struct election election;
    struct instant now;
    struct handouts handouts;
    struct election_actions last; /* of the newest step */

    enum election_op op;           /* under way: asked for and not yet answered */
    struct election_actions asked; /* the step that asked for it */
    struct instant sent;           /* when */

    int64_t server_ahead_us; /* the store's clock, minus BOOTTIME */
    const char *server;      /* whose clock that is */
    uint64_t next_token;     /* of the next grant or raise */
    uint64_t first_index;    /* decides which moments are its own */
    uint64_t seed;           /* of the random bytes in events */

    unsigned seen[STATE_COUNT][STATE_COUNT]; /* changes of state so far */
};

/* ttl 10 s, margin 2 s, valid-for 2 s, drain 10 s, correctness, ride-out; identity "pod-a". */
void driver_config(struct driver *driver);

/* Starts the candidate and sends the first tick: the first acquire is under way. */
void driver_start(struct driver *driver);

/* Both clocks go on. */
void driver_pass(struct driver *driver, int64_t ns);

/* One step, now. Replies are for driver_answer(). */
struct election_actions driver_event(struct driver *driver, enum election_event_type type);
struct election_actions driver_tick(struct driver *driver);
/* ... about the application; `token` for APP_DONE. */
struct election_actions driver_app(struct driver *driver, enum app_event app, uint64_t token);
struct election_actions driver_wake(struct driver *driver, bool clean);

/* One step as given; the driver fills in the clocks, handouts and random bytes. */
struct election_actions driver_step(struct driver *driver, struct election_event event);

/* Sleeps from wake-up to wake-up until an operation is asked for, and returns it. */
struct election_actions driver_sleep_to_op(struct driver *driver);
/* Sleeps from wake-up to wake-up until boot_ns; an operation under way stays unanswered. */
void driver_sleep_until(struct driver *driver, int64_t boot_ns);

/* Answers to the operation under way, sent when it was asked for. The store's clock is read now. */
struct store_reply reply_unsure(const struct driver *driver);
struct store_reply reply_yes(const struct driver *driver, enum prior prior);
struct store_reply reply_no(const struct driver *driver); /* the lock is free */
struct store_reply reply_held(const struct driver *driver, const char *holder); /* by another */

/* Gives the answer to the operation under way. */
struct election_actions driver_answer(struct driver *driver, struct store_reply reply);

/* ... after a millisecond: */
struct election_actions driver_yes(struct driver *driver); /* an acquire has to wait then */
struct election_actions driver_unsure(struct driver *driver);
struct election_actions driver_held(struct driver *driver); /* NO: "pod-b" has it */

/* From the start to a leader, or to a grant that has to wait W. */
void driver_lead(struct driver *driver);
void driver_pend(struct driver *driver);
/* From the start to a follower of "pod-b", whose key has `expires_ns` to go. */
void driver_follow(struct driver *driver, int64_t expires_ns);
/* From the start to a follower that has watched the store's clock for `ns`. */
void driver_watch(struct driver *driver, int64_t ns);

/* What a reader is told now. */
struct answer driver_ask(struct driver *driver);

int64_t driver_server_now_us(const struct driver *driver);
uint64_t driver_random(struct driver *driver);

#define assert_state(driver, is) assert_int_equal((driver)->election.view.state, (is))
#define assert_reason(driver, is) assert_int_equal((driver)->election.view.reason, (is))

#endif
