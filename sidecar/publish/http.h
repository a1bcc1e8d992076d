#ifndef GAVEL_PUBLISH_HTTP_H
#define GAVEL_PUBLISH_HTTP_H

#include "base/counters.h"
#include "base/error.h"
#include "config/config.h"
#include "publish/board.h"

#include <uv.h>

/* The application's HTTP API: /v1/elections, /v1/elections/NAME[/leader], /v1/leader and /. It
 * changes nothing. An election's path with ?index=N&wait=TIME waits for a change. Its own
 * connection limit, and one of its own for those who wait. */
struct http_api;

struct http_setup {
    uv_loop_t *loop;
    struct board *board;
    struct counters *counters;
    const struct listen_address *address;
};

/* Listens at once ("localhost": on 127.0.0.1 and ::1, the same port; the latter is left out where
 * the host has no IPv6). Sets WARNING_LISTENER_EXPOSED on the board when not loopback. Logs event
 * "listening" with listener=http, address, port. NULL: error is set. */
struct http_api *http_create(const struct http_setup *setup, struct error *error);

/* The port that was taken. */
uint16_t http_port(const struct http_api *api);

/* Stops accepting, lets replies under way end, frees; `closed` is called once, later. */
void http_close(struct http_api *api, void (*closed)(void *context), void *context);

#endif
