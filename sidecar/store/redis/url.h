#ifndef GAVEL_STORE_REDIS_URL_H
#define GAVEL_STORE_REDIS_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define REDIS_SECRET_MAX 512 /* bytes of a user name or password */

/* A URL taken apart, percent-decoded. Plain data, nothing to free; holds secrets. */
struct redis_url {
    bool local;     /* a Unix socket: `path`, else `host` and `port` */
    char host[256]; /* name or address, IPv6 without brackets */
    uint16_t port;
    char path[108];
    unsigned database;
    bool has_user;
    bool has_password;
    char user[REDIS_SECRET_MAX + 1];
    char password[REDIS_SECRET_MAX + 1];
};

/* True for redis: and redis+unix: URLs, right or wrong. */
bool redis_url_claims(const char *text);

/* False: error says what is wrong and what would be right. Errors never repeat a part of the URL:
 * where one delimiter is missing, any part of it may be the password. Re-entrant. */
bool redis_url_parse(const char *text, struct redis_url *url, struct error *error);

#endif
