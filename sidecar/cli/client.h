#ifndef GAVEL_CLI_CLIENT_H
#define GAVEL_CLI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A conversation with the sidecar over its Unix socket: a request on one line, replies on lines.
 * Everything is bounded: lines by CLIENT_LINE_MOST, time by a deadline. libc only. Caller's memory;
 * after a client_connect() that succeeded, client_close(). Times are CLOCK_BOOTTIME nanoseconds.
 */
#define CLIENT_LINE_MOST 16384 /* bytes, without the line end */

struct client {
    int fd;
    size_t length; /* of what was read */
    size_t taken;  /* of it, the line given out last and its end */
    char bytes[CLIENT_LINE_MOST + 1];
};

enum client_result {
    CLIENT_OK,
    CLIENT_TIMEOUT,
    CLIENT_ABSENT, /* nobody listens there; errno says why */
    CLIENT_CLOSED, /* the connection ended, perhaps in the middle of a line */
    CLIENT_JUNK,   /* a line that is too long, or has a NUL in it */
};

int64_t client_now_ns(void);
/* Why there was no answer, for people. */
const char *client_result_text(enum client_result result);

enum client_result client_connect(struct client *client, const char *path, int64_t deadline_ns);
/* Sends "VERB[ NAME]" and a line end. */
enum client_result client_send(struct client *client, const char *verb, const char *name,
                               int64_t deadline_ns);
/* The next line, without its end; good until the next call. */
enum client_result client_read(struct client *client, int64_t deadline_ns, const char **line);
void client_close(struct client *client);

/* Connects, asks, copies the reply to `line` (CLIENT_LINE_MOST + 1 bytes), closes. */
enum client_result client_ask(const char *path, const char *verb, const char *name,
                              int64_t deadline_ns, char *line);

#endif
