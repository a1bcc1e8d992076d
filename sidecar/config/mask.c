#include "config/mask.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char hidden[] = "***";
static const char *const secret_keys[] = {
    "password=", "passwd=", "pass=", "auth=", "secret=", "token="};

/* Parameters of libpq that are no secret; what is not here may be one. */
static const char *const harmless[] = {
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "passfile",
    "service",
    "application_name",
    "connect_timeout",
    "client_encoding",
    "target_session_attrs",
    "load_balance_hosts",
    "channel_binding",
    "replication",
    "gssencmode",
    "krbsrvname",
    "requirepeer",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "ssl",
    "sslmode",
    "sslcert",
    "sslkey",
    "sslrootcert",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
};

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

/* The character that stands here, percent-encoded or not; `next` is behind it. */
static char decoded(const char *at, const char **next) {
    if (at[0] == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2])) {
        char digits[3] = {at[1], at[2], '\0'};
        *next = at + 3;
        return (char)strtoul(digits, NULL, 16);
    }
    *next = at + 1;
    return *at;
}

/* Length of the text that says `word` here, in any case of letters; 0: it says something else. */
static size_t says(const char *text, const char *word) {
    const char *at = text;
    for (; *word != '\0'; word++) {
        if (*at == '\0' || tolower((unsigned char)decoded(at, &at)) != *word) {
            return 0;
        }
    }
    return (size_t)(at - text);
}

/* Length of the secret-bearing key that ends a name here ("sslpassword=" too); 0: none. */
static size_t secret_key(const char *text) {
    for (size_t i = 0; i < sizeof secret_keys / sizeof secret_keys[0]; i++) {
        size_t length = says(text, secret_keys[i]);
        if (length > 0) {
            return length;
        }
    }
    return 0;
}

/* Whether the parameter that starts here is one of libpq's that are shown. */
static bool is_harmless(const char *text) {
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        size_t length = says(text, harmless[i]);
        if (length > 0 && text[length] == '=') {
            return true;
        }
    }
    return false;
}

static void hide(char **out) {
    memcpy(*out, hidden, sizeof hidden - 1);
    *out += sizeof hidden - 1;
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
        *out += key;
        hide(out);
        from += key;
        while (from < end && *from != '&') {
            from++;
        }
    }
}

static const char *find(const char *from, const char *end, char c) {
    const char *at = memchr(from, c, (size_t)(end - from));
    return at != NULL ? at : end;
}

/* The same; of the parameters in a URL for libpq only those are shown that are known. */
static void copy_hiding(char **out, const char *from, const char *end, bool libpq) {
    const char *query = libpq ? find(from, end, '?') : end;
    copy_hiding_keys(out, from, query);
    while (query < end) {
        const char *name = query + 1;
        *(*out)++ = *query; /* '?' or '&' */
        query = find(name, end, '&');
        const char *equals = find(name, query, '=');
        if (equals == query || is_harmless(name)) {
            copy_hiding_keys(out, name, query);
        } else {
            memcpy(*out, name, (size_t)(equals + 1 - name));
            *out += equals + 1 - name;
            hide(out);
        }
    }
}

/* "USER:PASSWORD@": the user stays, unless nothing tells that it is no password. */
static void copy_credentials(char **out, const char *from, const char *at, bool libpq) {
    const char *colon = memchr(from, ':', (size_t)(at - from));
    if (colon != NULL) {
        copy_hiding(out, from, colon, libpq);
        *(*out)++ = ':';
    }
    hide(out);
}

/* One URL, or what somebody took for one, up to `end`. */
static void copy_part(char **out, const char *from, const char *end) {
    const char *scheme = strstr(from, "://");
    const char *start = scheme != NULL && scheme < end ? scheme + 3 : from;
    const char *at = last_at(start, end);
    bool libpq = says(from, "postgres") > 0;
    if (at == NULL) {
        copy_hiding(out, from, end, libpq);
        return;
    }
    copy_hiding_keys(out, from, start);
    copy_credentials(out, start, at, libpq);
    copy_hiding(out, at, end, libpq);
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
