/* A request's path, its query and a Host header, a line each. Whatever they are, what is parsed is
 * within its bounds: a name that an election may have, or "?"; a wait that is not longer than the
 * longest; and only names of this machine are local. */
#include "base/httpd.h"
#include "publish/http_path.h"
#include "publish/http_query.h"

#include "config/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_path(const char *path) {
    struct http_path parsed;
    memset(&parsed, 0x55, sizeof parsed);
    http_path_parse(&parsed, path);
    require(parsed.route >= ROUTE_UNKNOWN && parsed.route <= ROUTE_LEADER);
    bool named = parsed.route == ROUTE_ELECTION || parsed.route == ROUTE_LEADER;
    if (!named) {
        return;
    }
    require(memchr(parsed.name, '\0', sizeof parsed.name) != NULL);
    require(strchr(parsed.name, '/') == NULL || path[0] == '/');
    if (parsed.route == ROUTE_ELECTION) {
        require(parsed.name[0] != '\0');
    }
}

static void check_query(const char *query) {
    struct http_query parsed;
    const char *problem = NULL;
    if (!http_query_parse(&parsed, query, &problem)) {
        require(problem != NULL && problem[0] != '\0');
        return;
    }
    require(parsed.wait_ns >= 0 && parsed.wait_ns <= HTTP_WAIT_MOST_NS);
}

/* "127.1.2.3", as a pattern. */
static bool is_loopback_v4(const char *name, size_t length) {
    size_t parts = 0;
    for (size_t at = 0; at < length; parts++) {
        size_t digits = strspn(name + at, "0123456789");
        at += digits;
        if (digits == 0 || digits > 3 || (at < length && name[at++] != '.')) {
            return false;
        }
    }
    return parts == 4 && strncmp(name, "127.", 4) == 0 && name[length - 1] != '.';
}

/* Zeros and one 1 at the end, however they are written. */
static bool is_loopback_v6(const char *name, size_t length) {
    return length >= 3 && strspn(name, "0:.") == length - 1 && name[length - 1] == '1';
}

/* The reference: every form that a local name may have, and nothing else. */
static void check_host(const char *host) {
    if (!httpd_host_is_local(host)) {
        require(strcasecmp(host, "localhost") != 0 && strcmp(host, "127.0.0.1") != 0);
        require(strcmp(host, "[::1]") != 0);
        return;
    }
    bool bracket = host[0] == '[';
    const char *name = host + bracket;
    size_t length = strcspn(name, bracket ? "]" : ":");
    const char *rest = name + length + bracket;
    require(bracket ? is_loopback_v6(name, length)
                    : is_loopback_v4(name, length) ||
                          (length == 9 && strncasecmp(name, "localhost", length) == 0));
    require(rest[0] == '\0' || (rest[0] == ':' && rest[1] != '\0' &&
                                rest[1 + strspn(rest + 1, "0123456789")] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void (*const checks[])(const char *text) = {check_path, check_query, check_host};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    char *rest = text;
    for (size_t i = 0; i < 3; i++) {
        /* Exactly as long as it is, so that AddressSanitizer sees the first byte behind it. */
        char *line = strdup(strsep(&rest, "\n"));
        require(line != NULL);
        checks[i](line);
        free(line);
        if (rest == NULL) {
            break;
        }
    }
    free(text);
    return 0;
}
