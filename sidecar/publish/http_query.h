#ifndef GAVEL_PUBLISH_HTTP_QUERY_H
#define GAVEL_PUBLISH_HTTP_QUERY_H

#include <stdbool.h>
#include <stdint.h>

/* "index=17&wait=10s": answer when the index is another one, or when the time is over. */
struct http_query {
    bool has_index;
    uint64_t index;
    int64_t wait_ns; /* at most HTTP_WAIT_MOST_NS, which is also what an index alone means */
};

#define HTTP_WAIT_MOST_NS (INT64_C(30) * 1000000000)

/* `query` may be NULL. False: *problem says what is wrong (static text). Re-entrant. */
bool http_query_parse(struct http_query *parsed, const char *query, const char **problem);

#endif
