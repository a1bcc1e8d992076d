#include "store/redis/url.h"

#include <string.h>
#include <strings.h>

#define URL_MAX 2048
#define PORT_DEFAULT 6379
#define SENTINEL_PORT_DEFAULT 26379
#define DATABASE_DIGITS_MAX 9

struct scheme {
    const char *name;
    bool local;
    bool sentinel;
    bool tls;
    const char *like; /* for errors */
};

static const struct scheme schemes[] = {
    {"redis:", false, false, false, "redis://host:6379/0"},
    {"rediss:", false, false, true, "rediss://host:6379/0"},
    {"redis+unix:", true, false, false, "redis+unix:///run/redis/redis.sock"},
    {"redis+sentinel:", false, true, false, "redis+sentinel://host1,host2,host3/master/0"},
    {"rediss+sentinel:", false, true, true, "rediss+sentinel://host1,host2,host3/master/0"},
};

/* A piece of the URL, not terminated. */
struct piece {
    const char *start;
    size_t size;
};

static bool starts_with(const char *text, const char *prefix) {
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static const struct scheme *scheme_of(const char *text) {
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (starts_with(text, schemes[i].name)) {
            return &schemes[i];
        }
    }
    return NULL;
}

bool redis_url_claims(const char *text) {
    return scheme_of(text) != NULL;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* Percent-decodes into `out`, terminated. `what` names the piece in errors. */
static bool decode(struct piece piece, char *out, size_t size, const char *what,
                   struct error *error) {
    size_t used = 0;
    for (size_t i = 0; i < piece.size; i++) {
        int byte = (unsigned char)piece.start[i];
        if (byte == '%') {
            int high = i + 1 < piece.size ? hex_value(piece.start[i + 1]) : -1;
            int low = i + 2 < piece.size ? hex_value(piece.start[i + 2]) : -1;
            byte = high * 16 + low;
            if (high < 0 || low < 0 || byte == 0) {
                error_set(error,
                          "store URL: a percent sign in the %s must be followed by two hex "
                          "digits, not 00; write %%25 for a percent sign",
                          what);
                return false;
            }
            i += 2;
        }
        if (used + 1 >= size) {
            error_set(error, "store URL: the %s is longer than %zu bytes", what, size - 1);
            return false;
        }
        out[used++] = (char)byte;
    }
    out[used] = '\0';
    return true;
}

static bool parse_whole(struct piece piece, size_t digits_max, unsigned *number) {
    if (piece.size == 0 || piece.size > digits_max) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.start[i] < '0' || piece.start[i] > '9') {
            return false;
        }
        *number = *number * 10 + (unsigned)(piece.start[i] - '0');
    }
    return true;
}

static bool parse_database(struct piece piece, unsigned *database, struct error *error) {
    if (!parse_whole(piece, DATABASE_DIGITS_MAX, database)) {
        error_set(error, "store URL: the database must be a number, as in redis://host:6379/2 or "
                         "redis+unix:///path?db=2");
        return false;
    }
    return true;
}

static bool parse_user(struct piece user, struct redis_url *url, struct error *error) {
    const char *colon = memchr(user.start, ':', user.size);
    struct piece name = user;
    if (colon != NULL) {
        name.size = (size_t)(colon - user.start);
        struct piece password = {colon + 1, user.size - name.size - 1};
        if (memchr(password.start, ':', password.size) != NULL) {
            error_set(error, "store URL: write %%3A for a colon in the password");
            return false;
        }
        url->has_password = true;
        if (!decode(password, url->password, sizeof url->password, "password", error)) {
            return false;
        }
    }
    url->has_user = name.size > 0;
    if (!url->has_user && !url->has_password) {
        error_set(error, "store URL: there is an @ but no user or password before it");
        return false;
    }
    return decode(name, url->user, sizeof url->user, "user", error);
}

/* Takes "user:password@" off the front of the authority. */
static bool take_user(struct piece *authority, struct redis_url *url, struct error *error) {
    const char *at = memchr(authority->start, '@', authority->size);
    if (at == NULL) {
        return true;
    }
    struct piece user = {authority->start, (size_t)(at - authority->start)};
    authority->size -= user.size + 1;
    authority->start = at + 1;
    if (memchr(authority->start, '@', authority->size) != NULL) {
        error_set(error, "store URL: more than one @; write %%40 for an @ in user or password");
        return false;
    }
    return parse_user(user, url, error);
}

/* Decodes `host`, which is a part of the authority. */
static bool take_host(struct piece host, const char *rest, struct piece *authority, char *out,
                      struct error *error) {
    authority->size -= (size_t)(rest - authority->start);
    authority->start = rest;
    return decode(host, out, REDIS_HOST_MAX + 1, "host", error);
}

static bool parse_bracketed(struct piece *authority, char *out, struct error *error) {
    const char *end = memchr(authority->start, ']', authority->size);
    struct piece host = {authority->start + 1, 0};
    bool right = end != NULL;
    if (right) {
        host.size = (size_t)(end - host.start);
        const char *zone = memchr(host.start, '%', host.size);
        size_t address = zone == NULL ? host.size : (size_t)(zone - host.start);
        right = memchr(host.start, ':', host.size) != NULL &&
                strspn(host.start, "0123456789abcdefABCDEF:.") >= address;
    }
    if (!right) {
        error_set(error, "store URL: an IPv6 address is written in brackets, as in "
                         "redis://[::1]:6379");
        return false;
    }
    return take_host(host, end + 1, authority, out, error);
}

/* Takes the host off the front of the authority. */
static bool parse_host(struct piece *authority, char *out, struct error *error) {
    if (authority->size > 0 && authority->start[0] == '[') {
        return parse_bracketed(authority, out, error);
    }
    const char *colon = memchr(authority->start, ':', authority->size);
    struct piece host = *authority;
    if (colon != NULL) {
        host.size = (size_t)(colon - host.start);
    }
    for (size_t i = 0; i < host.size; i++) {
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_",
                   host.start[i]) == NULL) {
            error_set(error, "store URL: the host may have letters, digits, dots, hyphens and "
                             "underscores; percent-encode special characters of a password");
            return false;
        }
    }
    if (host.size == 0) {
        error_set(error, "store URL: the host is missing, as in redis://host:6379");
        return false;
    }
    return take_host(host, host.start + host.size, authority, out, error);
}

static bool parse_port(struct piece rest, unsigned port, uint16_t *out, struct error *error) {
    if (rest.size > 0) {
        struct piece digits = {rest.start + 1, rest.size - 1};
        if (rest.start[0] != ':' || !parse_whole(digits, 5, &port) || port < 1 || port > 65535) {
            error_set(error, "store URL: the port must be a number from 1 to 65535; "
                             "percent-encode special characters of a password");
            return false;
        }
    }
    *out = (uint16_t)port;
    return true;
}

static bool parse_sentinels(struct piece list, struct redis_url *url, struct error *error) {
    for (bool more = true; more;) {
        const char *comma = memchr(list.start, ',', list.size);
        struct piece one = {list.start, comma == NULL ? list.size : (size_t)(comma - list.start)};
        if (url->sentinel_count == REDIS_SENTINELS_MAX) {
            error_set(error, "store URL: more than %d Sentinels", REDIS_SENTINELS_MAX);
            return false;
        }
        struct redis_endpoint *sentinel = &url->sentinels[url->sentinel_count++];
        if (!parse_host(&one, sentinel->host, error) ||
            !parse_port(one, SENTINEL_PORT_DEFAULT, &sentinel->port, error)) {
            return false;
        }
        more = comma != NULL;
        if (more) {
            list.size -= (size_t)(comma + 1 - list.start);
            list.start = comma + 1;
        }
    }
    return true;
}

/* Takes "/master" off the front of the path. */
static bool take_master(const char **path, struct redis_url *url, struct error *error) {
    struct piece master = {*path + 1, 0};
    if (**path == '/') {
        /* What Sentinel allows in a name. */
        master.size = strspn(master.start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789.-_");
    }
    const char *end = master.start + master.size;
    if (master.size == 0 || (*end != '/' && *end != '\0')) {
        error_set(error, "store URL: the name of the master that the Sentinels watch follows the "
                         "hosts, as in redis+sentinel://host1,host2,host3/mymaster");
        return false;
    }
    *path = end;
    return decode(master, url->master, sizeof url->master, "name of the master", error);
}

static bool parse_tcp(const char *rest, const struct scheme *scheme, struct redis_url *url,
                      struct error *error) {
    if (strncmp(rest, "//", 2) != 0) {
        error_set(error, "store URL: two slashes must follow %s, as in %s", scheme->name,
                  scheme->like);
        return false;
    }
    rest += 2;
    if (strpbrk(rest, "?#") != NULL) {
        error_set(error, "store URL: nothing may follow the database, no ? and no #; write %%3F "
                         "and %%23 for them in a password");
        return false;
    }
    struct piece authority = {rest, strcspn(rest, "/")};
    const char *path = rest + authority.size;
    if (!take_user(&authority, url, error)) {
        return false;
    }
    if (scheme->sentinel) {
        if (!parse_sentinels(authority, url, error) || !take_master(&path, url, error)) {
            return false;
        }
    } else if (!parse_host(&authority, url->host, error) ||
               !parse_port(authority, PORT_DEFAULT, &url->port, error)) {
        return false;
    }
    if (path[0] == '\0' || path[1] == '\0') {
        return true; /* database 0 */
    }
    struct piece database = {path + 1, strlen(path + 1)};
    return parse_database(database, &url->database, error);
}

static bool parse_query(const char *query, struct redis_url *url, struct error *error) {
    if (strncmp(query, "db=", 3) != 0) {
        error_set(error, "store URL: only ?db=N may follow the path of the socket");
        return false;
    }
    struct piece database = {query + 3, strlen(query + 3)};
    return parse_database(database, &url->database, error);
}

static bool parse_local(const char *rest, struct redis_url *url, struct error *error) {
    if (strncmp(rest, "//", 2) == 0) {
        rest += 2;
        struct piece authority = {rest, strcspn(rest, "/?#")};
        rest += authority.size;
        if (!take_user(&authority, url, error)) {
            return false;
        }
        if (authority.size != 0) {
            error_set(error, "store URL: redis+unix has no host; write redis+unix:///path with "
                             "three slashes, or redis+unix://user:password@/path");
            return false;
        }
    }
    struct piece path = {rest, strcspn(rest, "?#")};
    rest += path.size;
    if (path.size < 2 || path.start[0] != '/') {
        error_set(error, "store URL: the socket's path must be absolute, as in "
                         "redis+unix:///run/redis/redis.sock");
        return false;
    }
    if (!decode(path, url->path, sizeof url->path, "path of the socket", error)) {
        return false;
    }
    if (rest[0] == '#') {
        error_set(error, "store URL: no # may follow the path of the socket");
        return false;
    }
    return rest[0] == '\0' || parse_query(rest + 1, url, error);
}

bool redis_url_parse(const char *text, struct redis_url *url, struct error *error) {
    memset(url, 0, sizeof *url);
    size_t size = strnlen(text, URL_MAX + 1);
    if (size > URL_MAX) {
        error_set(error, "store URL: longer than %d bytes", URL_MAX);
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            error_set(error, "store URL: only visible ASCII characters may stand in it; "
                             "percent-encode all others");
            return false;
        }
    }
    const struct scheme *scheme = scheme_of(text);
    if (scheme == NULL) {
        error_set(error, "store URL: a Redis URL begins with redis://, rediss://, redis+unix:, "
                         "redis+sentinel:// or rediss+sentinel://");
        return false;
    }
    const char *rest = text + strlen(scheme->name);
    url->local = scheme->local;
    url->sentinel = scheme->sentinel;
    url->tls = scheme->tls;
    return scheme->local ? parse_local(rest, url, error) : parse_tcp(rest, scheme, url, error);
}
