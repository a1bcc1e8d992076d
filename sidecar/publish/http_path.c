#include "publish/http_path.h"

#include "base/httpd.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

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

/* What may follow the host: nothing, or a port. */
static bool is_port(const char *text) {
    if (text[0] == '\0') {
        return true;
    }
    size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
    return digits > 0 && digits <= 5 && text[1 + digits] == '\0';
}

bool http_host_is_local(const char *host) {
    bool bracket = host[0] == '[';
    const char *name = host + bracket;
    size_t length = strcspn(name, bracket ? "]" : ":");
    if (bracket && name[length] != ']') {
        return false;
    }
    char text[INET6_ADDRSTRLEN];
    if (!is_port(name + length + bracket) || length >= sizeof text) {
        return false;
    }
    memcpy(text, name, length);
    text[length] = '\0';
    if (bracket) {
        struct in6_addr v6;
        return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    }
    struct in_addr v4;
    return strcasecmp(text, "localhost") == 0 ||
           (inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}
