#ifndef GAVEL_PUBLISH_HTTP_PATH_H
#define GAVEL_PUBLISH_HTTP_PATH_H

#include "config/config.h"

#include <stdbool.h>

/* What a request's path asks for. Re-entrant, no allocation. */
enum http_route {
    ROUTE_UNKNOWN,
    ROUTE_BAD,      /* not a path, or badly percent-encoded */
    ROUTE_SERVER,   /* "*" */
    ROUTE_ROOT,     /* "/" */
    ROUTE_LIST,     /* "/v1/elections" */
    ROUTE_ELECTION, /* "/v1/elections/NAME" */
    ROUTE_LEADER,   /* "/v1/elections/NAME/leader", and "/v1/leader" with an empty name */
};

struct http_path {
    enum http_route route;
    char name[ELECTION_NAME_MAX + 1]; /* empty: the only election there is */
};

/* `path` without its query. A name that is too long to be one becomes "?", which no election has.
 */
void http_path_parse(struct http_path *parsed, const char *path);

#endif
