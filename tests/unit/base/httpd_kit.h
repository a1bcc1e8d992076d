#ifndef GAVEL_TESTS_BASE_HTTPD_KIT_H
#define GAVEL_TESTS_BASE_HTTPD_KIT_H

#include "base/httpd.h"
#include "kit/http_client.h"

/* What the tests of the HTTP server share: one that is started with `setup`, on a loop that runs
 * in this thread. "/big" is answered with BIG_BYTES, everything else with "hello". */
#define LEAST_LIMIT 8 /* no server takes fewer connections */
#define BIG_BYTES ((size_t)16 * 1024 * 1024)
#define ASK "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define ASK_BIG "GET /big HTTP/1.1\r\n\r\n"

struct httpd_fixture {
    uv_loop_t loop;
    struct httpd *httpd;
    struct httpd_setup setup;
    unsigned asked;
    bool closed;
    bool close_in_handler;
    struct httpd_request last;
    char last_path[HTTPD_TARGET_MAX + 1];
    char last_query[HTTPD_TARGET_MAX + 1];
};

/* Of cmocka: nothing is started yet. The end closes the server unless the test has, and checks that
 * nothing is left over. */
int httpd_setup_fixture(void **state);
int httpd_teardown_fixture(void **state);

void httpd_start(struct httpd_fixture *fixture);
/* Begins to close it. */
void httpd_stop(struct httpd_fixture *fixture);

/* For client_run_until(). */
bool httpd_has_asked(void *context);
bool httpd_is_closed(void *context);

int httpd_connect(struct httpd_fixture *fixture);
/* One request on this connection, or on a new one, gets its answer. */
void httpd_expect_answer_on(struct httpd_fixture *fixture, int fd);
void httpd_expect_answer(struct httpd_fixture *fixture);

#endif
