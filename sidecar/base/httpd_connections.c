#include "base/httpd_inside.h"

#include <poll.h>
#include <sys/socket.h>

#define SWEEP_EVERY_MS 1000

static unsigned *count_of(struct httpd *httpd, const struct httpd_list *list) {
    return list == &httpd->held ? &httpd->held_count : &httpd->connection_count;
}

void httpd_connection_remove(struct httpd *httpd, struct httpd_connection *connection) {
    struct httpd_list *list = connection->list;
    if (list == NULL) {
        return;
    }
    *(connection->previous != NULL ? &connection->previous->next : &list->first) = connection->next;
    *(connection->next != NULL ? &connection->next->previous : &list->last) = connection->previous;
    connection->list = NULL;
    --*count_of(httpd, list);
}

void httpd_connection_add(struct httpd *httpd, struct httpd_connection *connection,
                          struct httpd_list *list) {
    connection->list = list;
    connection->since_ms = uv_now(httpd->setup.loop);
    connection->next = NULL;
    connection->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = connection;
    list->last = connection;
    ++*count_of(httpd, list);
}

void httpd_connection_move(struct httpd *httpd, struct httpd_connection *connection,
                           struct httpd_list *list) {
    if (connection->list != NULL) {
        httpd_connection_remove(httpd, connection);
        httpd_connection_add(httpd, connection, list);
    }
}

/* Ends the stream; the library notices on its next run and closes the descriptor, which it owns. */
static void cut_off(struct httpd *httpd, struct httpd_connection *connection) {
    httpd_connection_remove(httpd, connection);
    shutdown(connection->fd, SHUT_RDWR);
}

static void cut_off_waiting(struct httpd *httpd, struct httpd_list *list) {
    struct httpd_connection *next = NULL;
    for (struct httpd_connection *one = list->first; one != NULL; one = next) {
        next = one->next;
        if (!one->answering) {
            cut_off(httpd, one);
        }
    }
}

void httpd_cut_off_waiting(struct httpd *httpd) {
    cut_off_waiting(httpd, &httpd->idle);
    cut_off_waiting(httpd, &httpd->busy);
}

bool httpd_can_hold(const struct httpd *httpd) {
    return !httpd->closing && httpd->held_count < httpd->hold_limit;
}

void httpd_hold_request(struct httpd *httpd, struct httpd_connection *connection,
                        struct httpd_hold *hold) {
    hold->exchange = connection->exchange;
    connection->exchange->hold = hold;
    connection->exchange->request.hold = hold;
    httpd_connection_move(httpd, connection, &httpd->held);
    MHD_suspend_connection(connection->exchange->handle);
}

static void resume(struct httpd *httpd, struct httpd_connection *connection) {
    httpd_connection_move(httpd, connection, &httpd->busy);
    MHD_resume_connection(connection->exchange->handle);
}

void httpd_resume(struct httpd *httpd, struct httpd_hold *hold) {
    struct httpd_connection *connection =
        MHD_get_connection_info(hold->exchange->handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
            ->socket_context;
    if (connection->list != &httpd->held) {
        return; /* on its way already, or its client has left */
    }
    resume(httpd, connection);
    httpd_run_soon(httpd);
}

void httpd_resume_all(struct httpd *httpd) {
    while (httpd->held.first != NULL) {
        resume(httpd, httpd->held.first);
    }
}

void httpd_cut_off_one(struct httpd *httpd) {
    struct httpd_connection *victim =
        httpd->idle.first != NULL ? httpd->idle.first : httpd->busy.first;
    if (victim != NULL) {
        cut_off(httpd, victim);
    }
}

uint64_t httpd_cut_off_late(struct httpd *httpd, struct httpd_list *list, unsigned limit_ms,
                            uint64_t next_ms) {
    uint64_t now_ms = uv_now(httpd->setup.loop);
    while (list->first != NULL && list->first->since_ms + limit_ms <= now_ms) {
        cut_off(httpd, list->first);
    }
    if (list->first != NULL && list->first->since_ms + limit_ms < next_ms) {
        next_ms = list->first->since_ms + limit_ms;
    }
    return next_ms;
}

static bool has_left(const struct httpd_connection *connection) {
    char byte;
    return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The library does not look at them at all. It has to be resumed to be closed. A client that has
 * closed its own side only may still read: it gets its answer now, and is idle and gone then. */
static void look_at_held(struct httpd *httpd) {
    struct httpd_connection *next = NULL;
    for (struct httpd_connection *one = httpd->held.first; one != NULL; one = next) {
        next = one->next;
        struct pollfd peer = {.fd = one->fd, .events = POLLRDHUP};
        if (poll(&peer, 1, 0) <= 0) {
            continue;
        }
        if ((peer.revents & (POLLHUP | POLLERR)) != 0) {
            cut_off(httpd, one);
            MHD_resume_connection(one->exchange->handle);
        } else {
            resume(httpd, one);
        }
        httpd_run_soon(httpd);
    }
}

/* The library overlooks the end of a stream that comes together with the last bytes it reads: its
 * descriptors are edge-triggered, and a short read makes it wait for an event. */
uint64_t httpd_cut_off_gone(struct httpd *httpd, uint64_t next_ms) {
    if (httpd->idle.first == NULL && httpd->held.first == NULL) {
        return next_ms;
    }
    uint64_t now_ms = uv_now(httpd->setup.loop);
    if (now_ms >= httpd->sweep_ms) {
        httpd->sweep_ms = now_ms + SWEEP_EVERY_MS;
        look_at_held(httpd);
        struct httpd_connection *next = NULL;
        for (struct httpd_connection *one = httpd->idle.first; one != NULL; one = next) {
            next = one->next;
            if (has_left(one)) {
                cut_off(httpd, one);
            }
        }
    }
    return httpd->sweep_ms < next_ms ? httpd->sweep_ms : next_ms;
}
