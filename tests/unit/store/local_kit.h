#ifndef GAVEL_TESTS_LOCAL_KIT_H
#define GAVEL_TESTS_LOCAL_KIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/local/local.h"
#include "store/local/lock.h"
#include "store/local/record.h"

#define KIT_TTL_NS (10 * NS_PER_S)

/* A temporary folder with a place for locks in it; two replicas' locks on one election. */
struct local_kit {
    char top[64];
    char url[128]; /* local:TOP/locks */
    struct place place;
    struct store_setup setups[2];
    struct lock locks[2]; /* of election "a", by "one" and "two" */
};

int local_kit_setup(void **state);
int local_kit_teardown(void **state);
#define LOCAL_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown((function), local_kit_setup, local_kit_teardown)

/* A request of election 0 with a nonce of this number. */
struct store_request kit_request(unsigned nonce);
/* Carries it out, here and now. */
struct lock_job kit_do(struct lock *lock, enum store_event_type type, struct store_request request);
/* Acquires; must be a YES. */
struct lock_job kit_take(struct lock *lock, unsigned nonce);
/* Releases with the clean mark for the grant's token; must be a YES. */
struct lock_job kit_give(struct lock *lock, unsigned nonce);
/* Fails with the answer's text unless it is this outcome. */
void kit_expect(const struct lock_job *job, enum outcome outcome);

/* "TOP/locks/default/NAME", in a static buffer. */
const char *kit_path(const struct local_kit *kit, const char *name);
void kit_write(const struct local_kit *kit, const char *name, const char *text, size_t length);
/* The record of election "a"; must be readable. */
struct record kit_record(const struct local_kit *kit);

#endif
