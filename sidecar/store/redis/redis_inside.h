#ifndef GAVEL_STORE_REDIS_REDIS_INSIDE_H
#define GAVEL_STORE_REDIS_REDIS_INSIDE_H

/* What redis.c and connections.c share; nobody else includes this. */

#include "store/redis/link.h"
#include "store/redis/replicas.h"
#include "store/redis/steps.h"
#include "store/redis/subscriber.h"
#include "store/redis/tls.h"
#include "store/redis/watcher.h"

struct redis_pending {
    enum store_event_type type;
    struct store_request request;
};

struct redis_store {
    struct store base;
    struct store_setup setup;
    struct redis_url url;
    struct redis_tls *tls; /* NULL: plain */
    struct store_lives lives;
    struct redis_resolver resolver;   /* of the URL's server ... */
    struct redis_sentinels sentinels; /* ... or else those who know where it is */
    struct redis_watcher watcher;     /* of the Sentinels; only with them */
    struct redis_master elsewhere;    /* what they say of late, if that is not the one in use ... */
    uint32_t elsewhere_tellers;       /* ... and which of them, a bit each */
    int64_t moved_ns;                 /* BOOTTIME of the last move to another master */
    struct redis_link link;
    struct redis_subscriber subscriber;
    struct redis_replicas replicas;
    struct redis_pending *pending;
    struct store_event *held; /* answers, until the replicas have acknowledged them; NULL: they are
                                 not asked to */
    size_t troubled;          /* the election that `problem` is about; the count: all of them */
    struct redis_steps steps;
    struct log_limit steps_limit;
    struct log_limit opened_limit;
    char server[SERVER_ID_MAX]; /* the last that answered */
    bool connected_before;
    void (*closed)(void *context);
    void *closed_context;
};

/* The connections, none of them made yet; what they tell goes to the store's owner. */
void redis_connections_init(struct redis_store *store);

#endif
