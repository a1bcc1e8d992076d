#ifndef GAVEL_STORE_REDIS_SENTINEL_H
#define GAVEL_STORE_REDIS_SENTINEL_H

#include "store/redis/resolver.h"
#include "store/redis/url.h"

#include <hiredis/hiredis.h>

/*
 * What Sentinels say, and what is remembered of it. A failover gives the master's new address a
 * greater epoch, so of two that disagree the one with the lower epoch has not heard of it yet.
 * https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/
 */

/* Where the master is, as one Sentinel says. Plain data; zeroed: nothing said. */
struct redis_master {
    char host[REDIS_HOST_MAX + 1]; /* an address, or a name where Sentinels announce names */
    uint16_t port;                 /* 0: nothing said */
    bool epoch_known;
    uint64_t epoch;
    unsigned replicas; /* those that the Sentinel has ever seen on it */
};

/* The answer to SENTINEL GET-MASTER-ADDR-BY-NAME; false: it is no address. */
bool redis_master_read_address(const redisReply *reply, struct redis_master *master);
/* The answer to SENTINEL MASTER: epoch and replicas, where it has them. */
void redis_master_read_details(const redisReply *reply, struct redis_master *master);
/* The text of a message +switch-master. False: it is about another master, or has another shape. */
bool redis_master_read_switch(const char *text, const char *name, struct redis_master *master);

bool redis_master_is_same(const struct redis_master *a, const struct redis_master *b);
/* `told` comes from before `known`. */
bool redis_master_is_older(const struct redis_master *told, const struct redis_master *known);
/* The one in use is not the master any more, if `told` is right. */
bool redis_master_has_moved(const struct redis_master *used, const struct redis_master *told);

/* What all connections of one store share. The caller's memory; the resolvers are counted in
 * `lives`. */
struct redis_sentinels {
    const struct redis_url *url;
    struct redis_resolver resolvers[REDIS_SENTINELS_MAX]; /* one for each in the URL */
    size_t first;               /* the one that was right last, to be asked first */
    struct redis_master newest; /* the last that was right or newer */
    unsigned replicas;          /* the most that was told of */
};

void redis_sentinels_init(struct redis_sentinels *sentinels, const struct redis_url *url,
                          uv_loop_t *loop, struct store_lives *lives);
/* That one has told: keeps the most replicas, and what is newer. */
void redis_sentinels_learn(struct redis_sentinels *sentinels, const struct redis_master *told);
/* It was right about the master. */
void redis_sentinels_trust(struct redis_sentinels *sentinels, const struct redis_master *master,
                           size_t teller);
/* For closing. */
void redis_sentinels_cancel(struct redis_sentinels *sentinels);

#endif
