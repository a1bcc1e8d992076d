/* A request's path, its query and a Host header, a line each. Whatever they are, what is parsed is
 * within its bounds: a name that an election may have, or "?"; a wait that is not longer than the
 * longest; and only names of this machine are local. */
#include "publish/http_path.h"
#include "publish/http_query.h"

#include "config/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static void check_host(const char *host) {
    if (http_host_is_local(host)) {
        bool named = strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0;
        require(named || strlen(host) >= strlen("localhost"));
        require(strchr(host, '/') == NULL && strchr(host, '@') == NULL);
    }
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
