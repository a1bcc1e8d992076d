#include "config/mask.h"

#include "base/memory.h"

#include <string.h>

static const char hidden[] = "***";
static const char *const secret_keys[] = {
    "password=", "passwd=", "pass=", "auth=", "secret=", "token="};

static const char *last_at(const char *from, const char *end) {
    for (const char *at = end; at > from; at--) {
        if (at[-1] == '@') {
            return at - 1;
        }
    }
    return NULL;
}

static bool is_scheme_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+';
}

/* Where the part that starts at `from` ends: at the comma before another URL ("...,redis://"),
 * else at the end. A "://" without such a comma may be in a password. */
static const char *part_end(const char *from) {
    for (const char *next = strstr(from, "://"); next != NULL; next = strstr(next + 1, "://")) {
        const char *scheme = next;
        while (scheme > from && is_scheme_character(scheme[-1])) {
            scheme--;
        }
        if (scheme > from && scheme < next && scheme[-1] == ',') {
            return scheme - 1;
        }
    }
    return from + strlen(from);
}

/* Length of the secret-bearing key that ends a name here ("sslpassword=" too); 0: none. */
static size_t secret_key(const char *text) {
    for (size_t i = 0; i < sizeof secret_keys / sizeof secret_keys[0]; i++) {
        size_t length = strlen(secret_keys[i]);
        if (strncasecmp(text, secret_keys[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

/* Copies `from` up to `end`, without what stands behind secret keys. */
static void copy_hiding_keys(char **out, const char *from, const char *end) {
    while (from < end) {
        size_t key = secret_key(from);
        if (key == 0 || key > (size_t)(end - from)) {
            *(*out)++ = *from++;
            continue;
        }
        memcpy(*out, from, key);
        memcpy(*out + key, hidden, sizeof hidden - 1);
        *out += key + sizeof hidden - 1;
        from += key;
        while (from < end && *from != '&') {
            from++;
        }
    }
}

/* "USER:PASSWORD@": the user stays, unless nothing tells that it is no password. */
static void copy_credentials(char **out, const char *from, const char *at) {
    const char *colon = memchr(from, ':', (size_t)(at - from));
    if (colon != NULL) {
        copy_hiding_keys(out, from, colon);
        *(*out)++ = ':';
    }
    memcpy(*out, hidden, sizeof hidden - 1);
    *out += sizeof hidden - 1;
}

/* One URL, or what somebody took for one, up to `end`. */
static void copy_part(char **out, const char *from, const char *end) {
    const char *scheme = strstr(from, "://");
    const char *start = scheme != NULL && scheme < end ? scheme + 3 : from;
    const char *at = last_at(start, end);
    if (at == NULL) {
        copy_hiding_keys(out, from, end);
        return;
    }
    copy_hiding_keys(out, from, start);
    copy_credentials(out, start, at);
    copy_hiding_keys(out, at, end);
}

char *mask_url(const char *url) {
    /* What is hidden stands beside a character that is kept: four times the length is enough. */
    char *masked = memory_zeroed(strlen(url) + 1, sizeof hidden);
    char *out = masked;
    const char *from = url;
    while (*from != '\0') {
        const char *end = part_end(from);
        copy_part(&out, from, end);
        if (*end == ',') {
            *out++ = ',';
            end++;
        }
        from = end;
    }
    return masked;
}

static bool has_secret_key(const char *from, const char *end) {
    for (; from < end; from++) {
        if (secret_key(from) > 0) {
            return true;
        }
    }
    return false;
}

struct url_credentials url_credentials(const char *url) {
    struct url_credentials found = {.user = false};
    while (*url != '\0') {
        const char *end = part_end(url);
        const char *scheme = strstr(url, "://");
        const char *start = scheme != NULL && scheme < end ? scheme + 3 : url;
        const char *at = last_at(start, end);
        if (at != NULL) {
            const char *colon = memchr(start, ':', (size_t)(at - start));
            found.user = found.user || (colon != NULL ? colon : at) > start;
            found.password = found.password || colon != NULL;
        }
        found.password = found.password || has_secret_key(start, end);
        url = *end == ',' ? end + 1 : end;
    }
    return found;
}
