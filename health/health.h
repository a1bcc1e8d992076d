#ifndef GAVEL_HEALTH_HEALTH_H
#define GAVEL_HEALTH_HEALTH_H

#include "base/counters.h"
#include "base/error.h"
#include "config/config.h"
#include "publish/board.h"
#include "store/store.h"

#include <uv.h>

/* What the kubelet, load balancers and Prometheus ask: /livez, /readyz, /leader[/NAME], /metrics.
 * Its own daemon and connection limit. No control here. */
struct health;

struct health_setup {
    uv_loop_t *loop;
    struct board *board;
    const struct counters *counters;
    struct counters *own_counters; /* the same object: where this listener counts its requests */
    const struct store_status *store;
    const struct listen_address *address;
};

/* Listens at once (host "": on all addresses of both families, IPv4 alone where IPv6 is off). Logs
 * event "listening" with listener=health, address, port. NULL: error is set. */
struct health *health_create(const struct health_setup *setup, struct error *error);

/* All listeners are up: /readyz answers 200 from now on; false again while draining. */
void health_set_ready(struct health *health, bool ready);

/* The port that was taken. */
uint16_t health_port(const struct health *health);

/* Stops accepting, lets replies under way end, frees; `closed` is called once, later. */
void health_close(struct health *health, void (*closed)(void *context), void *context);

#endif
