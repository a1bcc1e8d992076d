#ifndef GAVEL_TESTS_HEALTH_KIT_H
#define GAVEL_TESTS_HEALTH_KIT_H

#include "health/health.h"
#include "kit/http_client.h"
#include "publish/http.h"

/* What the tests of the health side share: a board with two elections, of which one is shown, and
 * the listener on all addresses of a loop that runs in this thread. */
#define END "\r\nHost: 10.1.2.3:4041\r\n\r\n"
#define TOKEN UINT64_C(1796157414879)

struct health_fixture {
    uv_loop_t loop;
    struct board_entry entries[2];
    struct election_counters election_counters[2];
    struct board board;
    struct counters counters;
    struct store_status store;
    struct listen_address address;
    struct health *health;
    struct http_api *api;
    unsigned closed;
};

/* Of cmocka. The end checks that nothing is left over; it closes `api` too. */
int health_setup_fixture(void **state);
int health_teardown_fixture(void **state);

void health_set_leader(struct board_entry *entry, int64_t lease_ns);

/* One request over 127.0.0.1. */
void health_ask(struct health_fixture *fixture, const char *request, struct reply *reply);

/* The same; it has to be answered so. `body` NULL: any. */
void health_expect(struct health_fixture *fixture, const char *request, int status,
                   const char *body);

#endif
