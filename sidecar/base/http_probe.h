#ifndef GAVEL_BASE_HTTP_PROBE_H
#define GAVEL_BASE_HTTP_PROBE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/*
 * Asks a program on this host over HTTP/1.1, again and again, whether it is well: a status of 200
 * to 399 says yes; another one, an error, or no status line in time says no. Only the status line
 * is read. Loop thread only; blocks nothing, bounded in time and memory.
 */
#define HTTP_TARGET_PATH_MAX 400
struct http_target {
    bool v4, v6;   /* where to try; both for "localhost" */
    char host[64]; /* as in the URL: the Host header has it */
    char v4_address[16];
    uint16_t port;
    char path[HTTP_TARGET_PATH_MAX + 1]; /* with the query, begins with a slash */
};

/* Reads "http://HOST[:PORT][/PATH]" where HOST is localhost, 127.x.x.x or [::1]. False: `error`
 * says what would be right, in words that go on after the value. */
bool http_target_parse(const char *url, struct http_target *target, struct error *error);

/* The number in a status line, complete or cut; 0: not known yet; -1: this is none. */
int http_status_parse(const char *text, size_t length);

struct http_probe;

/* `result` is called once for each request, later; `why` is for people. */
struct http_probe *http_probe_create(uv_loop_t *loop, const struct http_target *target,
                                     uint64_t every_ms, uint64_t timeout_ms,
                                     void (*result)(void *context, bool well, const char *why),
                                     void *context);
/* No result comes any more. Its memory goes with its last handle. */
void http_probe_close(struct http_probe *probe);

#endif
