#ifndef GAVEL_CLI_EXEC_LEASE_H
#define GAVEL_CLI_EXEC_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What `exec` was told of the lease, judged by its own clocks: how long a command may run under
 * it. Caller's memory, libc only, re-entrant. Times are nanoseconds.
 */
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define KILL_BEFORE_NS (50 * NS_PER_MS) /* what runs is killed so long before the deadline */

struct exec_lease {
    uint64_t token;      /* 0: none */
    int64_t deadline_ns; /* BOOTTIME: nothing may run any more */
    int64_t real_ns;     /* the same on REALTIME, which may only shorten it */
    int64_t grace_ns;    /* the command is asked to end so long before */
};

/* The line "lease TOKEN VALID_MS DEADLINE_NS TTL_MS", read now. False: its deadline is further
 * away than it was valid for when it was sent, so it is of another clock: nothing was taken. */
bool exec_lease_hear(struct exec_lease *lease, uint64_t token, int64_t valid_ms,
                     int64_t deadline_ns, int64_t ttl_ms);

/* It ends in so many milliseconds, if not sooner. */
void exec_lease_shorten(struct exec_lease *lease, int64_t ms);

/* What is left by both clocks; 0 or less: nothing. */
int64_t exec_lease_left_ns(const struct exec_lease *lease);

/* What is left until the first of two moments, on BOOTTIME and on REALTIME. */
int64_t exec_left_ns(int64_t boot_ns, int64_t real_ns);

/* False: whoever listens at the other end of this Unix socket is known to have another
 * CLOCK_BOOTTIME (a time namespace). Where that cannot be seen: true. */
bool exec_clock_is_shared(int fd);

#endif
