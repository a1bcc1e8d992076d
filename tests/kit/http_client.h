#ifndef GAVEL_TESTS_HTTP_CLIENT_H
#define GAVEL_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/*
 * A small HTTP client for tests of a server that runs on `loop` in the same thread: waiting runs
 * the loop. Everything that should come comes within CLIENT_WITHIN_MS or counts as not coming.
 */
#define CLIENT_WITHIN_MS 5000

struct reply {
    int status; /* 0: no whole reply came */
    char head[4096];
    char *body; /* NUL-terminated; free with reply_free() */
    size_t length;
    bool closed; /* the server closed the connection */
};

/* Descriptor, non-blocking; the test fails when there is no connection. */
int client_connect(const char *address, uint16_t port);

/* Sends all of it, running the loop as needed. False: the server closed the connection. */
bool client_send(uv_loop_t *loop, int fd, const void *bytes, size_t length);

/* The next reply on this connection. `head_only`: a HEAD was asked, no body follows. */
void client_receive(uv_loop_t *loop, int fd, bool head_only, struct reply *reply);

/* Connect, send, receive, close. */
void client_ask(uv_loop_t *loop, const char *address, uint16_t port, const char *request,
                struct reply *reply);

/* One turn of the loop, after at most 20 ms of waiting for it, or for input on `fd` (negative:
 * none). */
void client_turn(uv_loop_t *loop, int fd);

/* Runs the loop until the server has closed the connection; false: it did not in time. */
bool client_wait_closed(uv_loop_t *loop, int fd);

/* Runs the loop until `done(context)`; false: not in time. */
bool client_run_until(uv_loop_t *loop, bool (*done)(void *context), void *context);

/* The value of a header; NULL: there is none. Good until the next call. */
const char *reply_header(const struct reply *reply, const char *name);
void reply_free(struct reply *reply);

#endif
