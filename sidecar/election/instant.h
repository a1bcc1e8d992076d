#ifndef GAVEL_ELECTION_INSTANT_H
#define GAVEL_ELECTION_INSTANT_H

#include <stdint.h>

/*
 * One moment, read from both clocks. Nanoseconds.
 *
 * boot_ns: CLOCK_BOOTTIME, which goes on while the host is suspended. Every lease and every wait
 * runs on it. real_ns: CLOCK_REALTIME, which may only shorten a lease: it is the one clock that
 * shows, once it has been set right, that a virtual machine was paused.
 */
struct instant {
    int64_t boot_ns;
    int64_t real_ns;
};

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NEVER_NS INT64_MAX /* a moment that does not come */

#endif
