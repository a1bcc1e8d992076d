#include "store/redis/url.h"

#include <string.h>
#include <strings.h>

#define URL_MAX 2048
#define PORT_DEFAULT 6379
#define DATABASE_DIGITS_MAX 9

static const char tcp_scheme[] = "redis:";
static const char local_scheme[] = "redis+unix:";

/* A piece of the URL, not terminated. */
struct piece {
    const char *start;
    size_t size;
};

static bool starts_with(const char *text, const char *prefix) {
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

bool redis_url_claims(const char *text) {
    return starts_with(text, tcp_scheme) || starts_with(text, local_scheme);
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

static bool parse_bracketed(struct piece *authority, struct redis_url *url, struct error *error) {
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
    authority->size -= (size_t)(end + 1 - authority->start);
    authority->start = end + 1;
    return decode(host, url->host, sizeof url->host, "host", error);
}

static bool parse_host(struct piece *authority, struct redis_url *url, struct error *error) {
    if (authority->size > 0 && authority->start[0] == '[') {
        return parse_bracketed(authority, url, error);
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
    authority->start += host.size;
    authority->size -= host.size;
    return decode(host, url->host, sizeof url->host, "host", error);
}

static bool parse_port(struct piece rest, struct redis_url *url, struct error *error) {
    unsigned port = PORT_DEFAULT;
    if (rest.size > 0) {
        struct piece digits = {rest.start + 1, rest.size - 1};
        if (rest.start[0] != ':' || !parse_whole(digits, 5, &port) || port < 1 || port > 65535) {
            error_set(error, "store URL: the port must be a number from 1 to 65535; "
                             "percent-encode special characters of a password");
            return false;
        }
    }
    url->port = (uint16_t)port;
    return true;
}

static bool parse_tcp(const char *rest, struct redis_url *url, struct error *error) {
    if (strncmp(rest, "//", 2) != 0) {
        error_set(error, "store URL: two slashes must follow redis:, as in redis://host:6379");
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
    if (!take_user(&authority, url, error) || !parse_host(&authority, url, error) ||
        !parse_port(authority, url, error)) {
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
    url->local = true;
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
    if (starts_with(text, local_scheme)) {
        return parse_local(text + strlen(local_scheme), url, error);
    }
    if (starts_with(text, tcp_scheme)) {
        return parse_tcp(text + strlen(tcp_scheme), url, error);
    }
    error_set(error, "store URL: a Redis URL begins with redis:// or redis+unix:");
    return false;
}
