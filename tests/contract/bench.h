#ifndef GAVEL_TESTS_CONTRACT_BENCH_H
#define GAVEL_TESTS_CONTRACT_BENCH_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract.h"

/*
 * A loop with a few open stores ("clients") in one namespace of the subject's space. It watches
 * what holds for every event: never inside a call, one for each operation and of its kind, none
 * after close, `sent` between the call and the arrival. What it finds fails the next assertion.
 */
#define BENCH_CLIENTS 3
#define BENCH_ELECTIONS 200
#define BENCH_TTL_NS (10 * NS_PER_S)
#define BENCH_TIMEOUT_NS (5 * NS_PER_S)

struct bench;

struct client {
    struct bench *bench;
    struct store_setup setup;
    struct store_status status;
    struct store *store; /* NULL: not open */
    char identity[16];

    bool in_call;
    bool pending[BENCH_ELECTIONS];
    enum store_event_type expected[BENCH_ELECTIONS];
    struct instant called[BENCH_ELECTIONS];
    struct store_event events[BENCH_ELECTIONS]; /* the last answer */
    unsigned pending_count;

    unsigned wakes;
    bool wake_clean;
    bool close_on_event; /* closes the store from inside the next event */
    bool closing;
    bool in_close;
    bool closed;
};

struct bench {
    uv_loop_t loop;
    uv_timer_t watchdog;
    bool late; /* the watchdog's time is over */
    char namespace_[32];
    char names[BENCH_ELECTIONS][8];
    const char *name_list[BENCH_ELECTIONS];
    struct client clients[BENCH_CLIENTS];
    unsigned next_nonce;
    bool frozen;
    char violation[200]; /* empty: the contract held so far */
};

/* The one space of this program; made by main. */
extern struct contract_space contract_space;

/* A test's setup and teardown; *state is the bench. Clients 0 and 1 are open, named "one", "two"
 * and, once opened, "three". */
int bench_setup(void **state);
int bench_teardown(void **state);
#define BENCH_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown((function), bench_setup, bench_teardown)

/* Opens a client (again). `change`, if not NULL, may alter the setup before. */
struct client *client_open(struct bench *bench, size_t index,
                           void (*change)(struct store_setup *setup));
/* Closes and waits until it is closed. Nothing if it is not open. */
void client_close(struct client *client);
/* Calls close and returns. */
void client_start_close(struct client *client);

/* A request with a new nonce: take, no raise, no clean, the usual timeout. */
struct store_request request_new(struct bench *bench, size_t election);
/* The same with the nonce and the grant's token of another request. */
struct store_request request_again(const struct store_request *request);

/* Issues an operation (by the event that answers it) and returns at once. */
void client_issue(struct client *client, enum store_event_type type,
                  const struct store_request *request);
/* Turns the loop until nothing is pending; fails when that takes too long. */
void client_wait(struct client *client);
/* Issues, waits, gives the answer, which is good until the election's next one. */
const struct store_event *client_do(struct client *client, enum store_event_type type,
                                    const struct store_request *request);
/* client_do() that must be answered by this outcome. */
const struct store_reply *client_expect(struct client *client, enum store_event_type type,
                                        const struct store_request *request, enum outcome outcome);

/* Acquires with a new nonce, which must be a YES; the request that did it, with the token it got.
 */
struct store_request client_take(struct client *client, size_t election, uint64_t *token);
/* Releases what client_take() took; must be a YES. */
void client_give(struct client *client, const struct store_request *taken, bool clean);

/* Turns the loop for a while, or until the flag is true. False: it did not become true. */
bool bench_run(struct bench *bench, int64_t time_ns, const bool *until);
void bench_freeze(struct bench *bench);
void bench_thaw(struct bench *bench);
/* Fails when the contract was broken anywhere. */
void bench_check(struct bench *bench);

#endif
