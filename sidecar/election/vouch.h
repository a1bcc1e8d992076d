#ifndef GAVEL_ELECTION_VOUCH_H
#define GAVEL_ELECTION_VOUCH_H

#include "election/instant.h"

#include <stdbool.h>

#define SERVER_ID_MAX 96 /* "run_id:master_replid" and its end */

/*
 * Whether this sidecar may vouch for a store's clock: it has measured the server's time against
 * CLOCK_BOOTTIME, on this one server, for at least the wait W, and all measurements of the last
 * 2 W agree within a quarter of the margin. Only then does "the recorded end of the last lease has
 * passed" prove anything: a clock that stepped forward ends leases early.
 *
 * Measurements fall into three spans of W each, the current one and two older, so that at least
 * the last 2 W are always looked at, in constant space.
 */
struct vouch {
    char server[SERVER_ID_MAX];
    int64_t first_ns;  /* BOOTTIME of the first measurement of this series; 0: none */
    int64_t newest_ns; /* BOOTTIME of arrival of the newest */
    int64_t span_start_ns;
    int64_t wait_ns; /* W that the spans were made for */
    struct {
        int64_t min_ns, max_ns; /* server time minus BOOTTIME; min > max: empty */
    } spans[3];
};

struct vouch_sample {
    const char *server;    /* identity; empty: unknown, which resets the series */
    int64_t server_now_us; /* the server's own clock */
    int64_t sent_ns;       /* BOOTTIME */
    int64_t arrived_ns;    /* BOOTTIME */
};

/* Whether both name the same server; an empty name is like no other. */
bool server_is_same(const char *a, const char *b);

/* Takes a measurement; a longer W than before starts the series anew, since the spans reach back
 * by the old one. One whose round trip is not under margin/4 is left out. */
void vouch_add(struct vouch *vouch, const struct vouch_sample *sample, int64_t margin_ns,
               int64_t wait_ns);

/* True when the newest measurement arrived exactly at arrived_ns and all conditions hold. */
bool vouch_holds(const struct vouch *vouch, int64_t arrived_ns, int64_t margin_ns, int64_t wait_ns);

#endif
