#ifndef GAVEL_STORE_REDIS_SUBSCRIBER_H
#define GAVEL_STORE_REDIS_SUBSCRIBER_H

#include "base/log.h"
#include "store/redis/backoff.h"
#include "store/redis/names.h"
#include "store/redis/release.h"
#include "store/redis/route.h"

/*
 * Listens to the releases of all elections, on a connection of its own. Its messages only make
 * things quicker: losing it, or not being allowed to listen, changes nothing else.
 */
struct redis_subscriber_setup {
    struct redis_gate_setup gate;      /* its callbacks are the subscriber's own */
    struct redis_sentinels *sentinels; /* NULL: the URL names the server itself */
    const char *namespace_;
    const char *const *elections;
    size_t count;
    /* May close. */
    void (*on_release)(void *context, size_t election, const struct redis_release *release);
    /* It listens, or it is known that it cannot for now. May come again. */
    void (*settled)(void *context);
    void *context;
};

enum redis_subscriber_state {
    REDIS_SUBSCRIBER_IDLE,
    REDIS_SUBSCRIBER_CONNECTING,
    REDIS_SUBSCRIBER_ASKING, /* SUBSCRIBE is sent */
    REDIS_SUBSCRIBER_LISTENING,
    REDIS_SUBSCRIBER_PAUSING, /* before the next attempt */
    REDIS_SUBSCRIBER_DENIED,  /* the same, for much longer */
};

struct redis_subscriber {
    struct redis_subscriber_setup setup;
    struct redis_route route;
    uv_timer_t timer;
    enum redis_subscriber_state state;
    struct redis_stream *stream;
    size_t confirmed;
    bool checking; /* a SUBSCRIBE of one channel was sent only to see whether it answers */
    int64_t budget_ns;
    struct redis_backoff backoff;
    struct log_limit log_limit;
};

/* The caller's memory; it must outlive what is counted in the gate's `lives`. */
void redis_subscriber_init(struct redis_subscriber *subscriber,
                           const struct redis_subscriber_setup *setup);
/* Starts, or ends a pause early. */
void redis_subscriber_kick(struct redis_subscriber *subscriber, int64_t budget_ns);
/* The master is elsewhere: listens there, if it listens or was about to. */
void redis_subscriber_move(struct redis_subscriber *subscriber);
/* False while it is still about to listen. */
bool redis_subscriber_is_settled(const struct redis_subscriber *subscriber);
/* No callback comes any more. */
void redis_subscriber_close(struct redis_subscriber *subscriber);

#endif
