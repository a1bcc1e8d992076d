#ifndef GAVEL_TESTS_PUBLISH_HTTP_KIT_H
#define GAVEL_TESTS_PUBLISH_HTTP_KIT_H

#include "kit/http_client.h"
#include "publish/http.h"

/* What the tests of the HTTP API share: a board with two elections, of which one is shown, and the
 * API on a loop that runs in this thread. */
#define HOST "Host: localhost\r\n\r\n"
#define TOKEN UINT64_C(1796157414879)

struct http_fixture {
    uv_loop_t loop;
    struct board_entry entries[2];
    struct board board;
    struct counters counters;
    struct listen_address address;
    struct http_api *api;
    bool closed;
};

/* Of cmocka: with the API on localhost, or without. The end checks that nothing is left over. */
int http_setup_fixture(void **state);
int http_setup_without_api(void **state);
int http_teardown_fixture(void **state);

void http_start(struct http_fixture *fixture);
void http_stop(struct http_fixture *fixture);

void http_set_leader(struct board_entry *entry, int64_t lease_ns);
void http_set_follower(struct board_entry *entry, const char *holder);

/* One request over 127.0.0.1. */
void http_ask(struct http_fixture *fixture, const char *request, struct reply *reply);

/* A GET with this Host header has to be answered with `status`. */
void http_expect_host(struct http_fixture *fixture, const char *host, int status);

#endif
