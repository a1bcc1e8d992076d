#ifndef GAVEL_PUBLISH_SOCKET_H
#define GAVEL_PUBLISH_SOCKET_H

#include "base/counters.h"
#include "base/error.h"
#include "publish/board.h"

#include <uv.h>

/*
 * The Unix socket that applications and the command line talk to: one request a line, one reply a
 * line. Verbs: check, status, watch, resign. Lines over 512 bytes, unknown verbs and too many
 * clients get an error line and a close; a slow watcher is coalesced, then dropped. SIGPIPE has to
 * be ignored by the process. PATH.lock excludes a second server on the path; it stays behind.
 */
struct socket_server;

struct socket_setup {
    uv_loop_t *loop;
    struct board *board;
    struct counters *counters;
    const char *path; /* its folder exists; at most SOCKET_PATH_MAX bytes */
    unsigned mode;    /* permission bits */
    /* Asks to give up leadership of one election; answered by socket_resigned(), later or from
     * within the call. Not asked again while one who asked is waiting. */
    void (*resign)(void *context, size_t election);
    void *context;
};

/* Listens at once. A stale socket file is replaced only when connecting to it is refused; one that
 * is in use is an error. NULL: error is set. */
struct socket_server *socket_create(const struct socket_setup *setup, struct error *error);

/* A resignation of this election is complete: all who asked get "ok". */
void socket_resigned(struct socket_server *server, size_t election);

/* The process drains: a resign is refused from now on ("shutting-down"), one that waits too; checks
 * and watches go on. */
void socket_drain(struct socket_server *server);

/* Ends all connections, removes the socket file; `closed` is called once, later. */
void socket_close(struct socket_server *server, void (*closed)(void *context), void *context);

#endif
