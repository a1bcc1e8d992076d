#ifndef GAVEL_STORE_REDIS_URL_H
#define GAVEL_STORE_REDIS_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDIS_SECRET_MAX 512 /* bytes of a user name or password */
#define REDIS_HOST_MAX 255
#define REDIS_MASTER_MAX 128 /* characters of a name that Sentinels watch a master under */
#define REDIS_SENTINELS_MAX 16

struct redis_endpoint {
    char host[REDIS_HOST_MAX + 1]; /* name or address, IPv6 without brackets */
    uint16_t port;
};

/* A URL taken apart, percent-decoded. Plain data, nothing to free; holds secrets. */
struct redis_url {
    bool local;    /* a Unix socket: `path` */
    bool tls;      /* every connection, those to Sentinels too */
    bool sentinel; /* `sentinels` know where `master` is; else `host` and `port` */
    char host[REDIS_HOST_MAX + 1];
    uint16_t port;
    char path[108];
    struct redis_endpoint sentinels[REDIS_SENTINELS_MAX];
    size_t sentinel_count;
    char master[REDIS_MASTER_MAX + 1];
    unsigned database;
    bool has_user;
    bool has_password;
    char user[REDIS_SECRET_MAX + 1];
    char password[REDIS_SECRET_MAX + 1];
};

/* True for redis:, rediss:, redis+unix:, redis+sentinel: and rediss+sentinel: URLs, right or wrong.
 */
bool redis_url_claims(const char *text);

/* False: error says what is wrong and what would be right. Errors never repeat a part of the URL:
 * where one delimiter is missing, any part of it may be the password. Re-entrant. */
bool redis_url_parse(const char *text, struct redis_url *url, struct error *error);

#endif
