#ifndef GAVEL_PUBLISH_SOCKET_H
#define GAVEL_PUBLISH_SOCKET_H

#include "base/counters.h"
#include "base/error.h"
#include "election/election.h"
#include "publish/board.h"

#include <uv.h>

/*
 * The Unix socket that applications and the command line talk to: one request a line, one reply a
 * line. Verbs: check, status, watch, attach, resign. Lines over 512 bytes, unknown verbs and too
 * many clients get an error line and a close; a slow watcher is coalesced, then dropped. SIGPIPE
 * has to be ignored by the process. PATH.lock excludes a second server on the path; it stays
 * behind.
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
    /* What an attached application does: ATTACHED, GONE (ended by it), CUT (ended by us), BEATS,
     * DONE with `token`, RESIGNS. Perhaps from within socket_revoke() and the like: may be NULL. */
    void (*application)(void *context, size_t election, enum app_event event, uint64_t token);
    void *context;
    int64_t ttl_ns;         /* this and the next are told to those who ask for the lease */
    int64_t app_timeout_ns; /* 0: no beat is wanted */
};

/* Listens at once. A stale socket file is replaced only when connecting to it is refused; one that
 * is in use is an error. NULL: error is set. */
struct socket_server *socket_create(const struct socket_setup *setup, struct error *error);

/* A resignation of this election is complete: all who asked get "ok". */
void socket_resigned(struct socket_server *server, size_t election);

/* Tells the attached application to stop working under the token by then (BOOTTIME). */
void socket_revoke(struct socket_server *server, size_t election, uint64_t token, int64_t by_ns);

/* The lease may have been extended: one that asked for it is told. */
void socket_lease(struct socket_server *server, size_t election);

/* The process drains: a resign is refused from now on ("shutting-down"), one that waits too; checks
 * and watches go on. */
void socket_drain(struct socket_server *server);

/* Ends all connections, removes the socket file; `closed` is called once, later. */
void socket_close(struct socket_server *server, void (*closed)(void *context), void *context);

#endif
