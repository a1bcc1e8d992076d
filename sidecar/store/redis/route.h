#ifndef GAVEL_STORE_REDIS_ROUTE_H
#define GAVEL_STORE_REDIS_ROUTE_H

#include "store/redis/gate.h"

/*
 * The way to the master, within one deadline: straight to the server of the URL, or by Sentinels.
 * Those are asked in turn, the one that was right last first, each within its share of what is left
 * of the time, until one names a server that lets us in as master. An answer that is older than
 * what is known already is only used when every Sentinel has answered and none knows better: then
 * they were made anew.
 */
struct redis_route {
    struct redis_gate_setup setup;     /* the callbacks are the owner's */
    struct redis_sentinels *sentinels; /* NULL: straight */
    struct redis_gate gate;            /* to the server */
    struct redis_gate ask;             /* to a Sentinel */
    struct redis_resolver resolver;    /* of the name that a Sentinel gave */
    int64_t deadline_ns;               /* BOOTTIME */
    size_t first;                      /* index of the Sentinel that is asked first */
    size_t asked;                      /* how many were asked in this attempt */
    struct redis_master master;        /* being tried, in use, or tried last; port 0: none */
    size_t teller;                     /* index of the Sentinel that named it */
    struct redis_master older;         /* the best of those that were too old; port 0: none */
    size_t older_teller;
    bool silent; /* a Sentinel did not answer in this attempt */
    bool tried;  /* a server that was named; what it said is what is told */
    enum redis_gate_end end;
    char text[REDIS_GATE_TEXT];
};

/* The caller's memory; it must outlive what is counted in the setup's `lives`. on_open and
 * on_failed come as from a gate: once for each start, never before that returns. */
void redis_route_init(struct redis_route *route, const struct redis_gate_setup *setup,
                      struct redis_sentinels *sentinels);
void redis_route_start(struct redis_route *route, int64_t budget_ns);
void redis_route_cancel(struct redis_route *route);
/* Cancels and gives up its handles, for good. */
void redis_route_close(struct redis_route *route);

#endif
