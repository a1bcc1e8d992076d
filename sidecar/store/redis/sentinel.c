#include "store/redis/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLICAS_MAX 10000
#define SWITCH_WORDS 5 /* name, the old host and port, the new ones */

static bool read_number(const char *text, size_t size, uint64_t most, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || i >= 18) {
            return false;
        }
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    }
    return size > 0 && *number <= most;
}

static bool set_address(struct redis_master *master, const char *host, size_t host_size,
                        const char *port, size_t port_size) {
    uint64_t number = 0;
    if (host_size == 0 || host_size > REDIS_HOST_MAX ||
        !read_number(port, port_size, UINT16_MAX, &number) || number == 0) {
        return false;
    }
    for (size_t i = 0; i < host_size; i++) {
        if (host[i] <= ' ' || host[i] > '~') {
            return false;
        }
    }
    memset(master, 0, sizeof *master);
    memcpy(master->host, host, host_size);
    master->port = (uint16_t)number;
    return true;
}

bool redis_master_read_address(const redisReply *reply, struct redis_master *master) {
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING) {
        return false;
    }
    return set_address(master, reply->element[0]->str, reply->element[0]->len,
                       reply->element[1]->str, reply->element[1]->len);
}

/* A field of a flat array of names and values. */
static bool find_number(const redisReply *reply, const char *name, uint64_t most,
                        uint64_t *number) {
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *key = reply->element[i];
        const redisReply *value = reply->element[i + 1];
        if (key->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING &&
            strcmp(key->str, name) == 0) {
            return read_number(value->str, value->len, most, number);
        }
    }
    return false;
}

void redis_master_read_details(const redisReply *reply, struct redis_master *master) {
    uint64_t replicas = 0;
    if (reply->type != REDIS_REPLY_ARRAY) {
        return; /* not allowed to ask for it, perhaps */
    }
    master->epoch_known = find_number(reply, "config-epoch", UINT64_MAX, &master->epoch);
    if (find_number(reply, "num-slaves", REPLICAS_MAX, &replicas)) {
        master->replicas = (unsigned)replicas;
    }
}

bool redis_master_read_switch(const char *text, const char *name, struct redis_master *master) {
    const char *words[SWITCH_WORDS];
    size_t sizes[SWITCH_WORDS];
    for (size_t i = 0; i < SWITCH_WORDS; i++) {
        words[i] = text;
        sizes[i] = strcspn(text, " ");
        text += sizes[i];
        if ((*text == '\0') != (i + 1 == SWITCH_WORDS)) {
            return false;
        }
        text++;
    }
    return sizes[0] == strlen(name) && memcmp(words[0], name, sizes[0]) == 0 &&
           set_address(master, words[3], sizes[3], words[4], sizes[4]);
}

bool redis_master_is_same(const struct redis_master *a, const struct redis_master *b) {
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool redis_master_is_older(const struct redis_master *told, const struct redis_master *known) {
    return told->epoch_known && known->epoch_known && told->epoch < known->epoch;
}

bool redis_master_has_moved(const struct redis_master *used, const struct redis_master *told) {
    /* With the same epoch it is another name for the same server. */
    bool later = !used->epoch_known || !told->epoch_known || told->epoch > used->epoch;
    return used->port != 0 && told->port != 0 && later && !redis_master_is_same(used, told);
}

void redis_sentinels_init(struct redis_sentinels *sentinels, const struct redis_url *url,
                          uv_loop_t *loop, struct store_lives *lives) {
    memset(sentinels, 0, sizeof *sentinels);
    sentinels->url = url;
    for (size_t i = 0; i < url->sentinel_count; i++) {
        redis_resolver_init(&sentinels->resolvers[i], loop, lives, url->sentinels[i].host,
                            url->sentinels[i].port);
    }
}

void redis_sentinels_learn(struct redis_sentinels *sentinels, const struct redis_master *told) {
    if (told->replicas > sentinels->replicas) {
        sentinels->replicas = told->replicas;
    }
    if (told->epoch_known && !redis_master_is_older(told, &sentinels->newest)) {
        sentinels->newest = *told;
    }
}

void redis_sentinels_trust(struct redis_sentinels *sentinels, const struct redis_master *master,
                           size_t teller) {
    sentinels->first = teller;
    sentinels->newest = *master;
}

void redis_sentinels_cancel(struct redis_sentinels *sentinels) {
    for (size_t i = 0; i < sentinels->url->sentinel_count; i++) {
        redis_resolver_cancel(&sentinels->resolvers[i]);
    }
}
