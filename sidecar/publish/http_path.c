#include "publish/http_path.h"

#include "base/httpd.h"

#include <string.h>

#define ELECTIONS "/v1/elections"

/* "NAME" or "NAME/leader" */
static void parse_election(struct http_path *parsed, const char *rest) {
    size_t length = strcspn(rest, "/");
    const char *tail = rest + length;
    if (length == 0 || (tail[0] != '\0' && strcmp(tail, "/leader") != 0)) {
        return;
    }
    char name[HTTPD_TARGET_MAX + 1];
    if (!httpd_decode(rest, length, name, sizeof name)) {
        parsed->route = ROUTE_BAD;
        return;
    }
    parsed->route = tail[0] != '\0' ? ROUTE_LEADER : ROUTE_ELECTION;
    length = strlen(name);
    strcpy(parsed->name, "?");
    if (length <= ELECTION_NAME_MAX) {
        memcpy(parsed->name, name, length + 1);
    }
}

void http_path_parse(struct http_path *parsed, const char *path) {
    *parsed = (struct http_path){.route = ROUTE_UNKNOWN};
    const size_t prefix = strlen(ELECTIONS);
    if (strcmp(path, "*") == 0) {
        parsed->route = ROUTE_SERVER;
    } else if (path[0] != '/') {
        parsed->route = ROUTE_BAD;
    } else if (strcmp(path, "/") == 0) {
        parsed->route = ROUTE_ROOT;
    } else if (strcmp(path, ELECTIONS) == 0) {
        parsed->route = ROUTE_LIST;
    } else if (strcmp(path, "/v1/leader") == 0) {
        parsed->route = ROUTE_LEADER;
    } else if (strncmp(path, ELECTIONS, prefix) == 0 && path[prefix] == '/') {
        parse_election(parsed, path + prefix + 1);
    }
}
