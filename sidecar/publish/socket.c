#include "publish/socket_parts.h"

#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_LEAST 8
#define ACCEPT_BATCH 32 /* then others have their turn */

const struct socket_limits socket_limits_default = {
    .clients = 1280,
    .watchers = 1024,
    .refused = 64,
    .first_request_ms = 10000,
    .idle_ms = 5000,
    .linger_ms = 1000,
    .stuck_ms = 5000,
    .accept_pause_ms = 100,
};

void socket_server_unref(struct socket_server *server) {
    if (--server->open_handles > 0) {
        return;
    }
    void (*closed)(void *) = server->closed;
    void *context = server->closed_context;
    free(server->attached);
    free(server);
    closed(context);
}

static size_t served_count(const struct socket_server *server) {
    return server->phases[PHASE_SERVING] + server->phases[PHASE_RESIGNING] +
           server->phases[PHASE_WATCHING] + server->phases[PHASE_ATTACHED];
}

/* Whom to end so that another can come in: the one that has been there for longest without ever
 * asking anything, else the one that has been idle for longest. */
static struct socket_client *least_missed(const struct socket_server *server) {
    uint64_t now_ms = uv_now(server->setup.loop);
    struct socket_client *least = NULL;
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        bool idle = now_ms - client->active_ms >= server->limits.idle_ms;
        if (client->phase != PHASE_SERVING || client->unsent != NULL || (client->served && !idle)) {
            continue;
        }
        /* Newest first in the list: of equals the later one here is the older one. */
        bool less = least == NULL || client->served < least->served ||
                    (client->served == least->served && client->active_ms <= least->active_ms);
        if (less && !socket_client_has_input(client)) {
            least = client;
        }
    }
    return least;
}

static void admit(struct socket_server *server, int fd) {
    static const char text[] = "too many connections";
    bool full = served_count(server) >= server->limits.clients;
    struct socket_client *least = full ? least_missed(server) : NULL;
    if (least != NULL) {
        socket_client_refuse(least, FAULT_TOO_MANY, text);
    }
    struct socket_client *client = socket_client_create(server, fd);
    if (full && least == NULL) {
        socket_client_refuse(client, FAULT_TOO_MANY, text);
    }
}

static void accept_again(uv_timer_t *timer);
static void on_connections(uv_poll_t *poll, int status, int events);

static void pause_accepting(struct socket_server *server, int error) {
    static struct log_limit limit;
    uint64_t suppressed;
    if (log_allow(&limit, 10000, &suppressed)) {
        log_event(LOG_WARN, "accept-failed", LOG_TEXT("listener", "socket"),
                  LOG_TEXT("error", strerror(error)), LOG_NUMBER("suppressed", suppressed));
    }
    uv_poll_stop(&server->listener);
    uv_timer_start(&server->pause, accept_again, server->limits.accept_pause_ms, 0);
}

static void accept_again(uv_timer_t *timer) {
    struct socket_server *server = timer->data;
    uv_poll_start(&server->listener, UV_READABLE, on_connections);
}

/* libuv's own accepting closes clients unheard when descriptors run out, or does not return at
 * all; here they wait in the backlog. */
static void on_connections(uv_poll_t *poll, int status, int events) {
    (void)events;
    struct socket_server *server = poll->data;
    if (status < 0) {
        pause_accepting(server, -status);
        return;
    }
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(server->place.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            admit(server, fd);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            pause_accepting(server, errno);
            return;
        }
    }
}

static void on_board_changed(struct board_observer *observer, struct board_entry *entry) {
    struct socket_server *server =
        (struct socket_server *)((char *)observer - offsetof(struct socket_server, observer));
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        if (client->phase == PHASE_WATCHING && client->entry == entry) {
            socket_watch_push(client);
        }
    }
}

struct socket_server *socket_create_limited(const struct socket_setup *setup,
                                            const struct socket_limits *limits,
                                            struct error *error) {
    struct socket_server *server = memory_zeroed(1, sizeof *server);
    server->setup = *setup;
    server->setup.path = NULL; /* the caller's; the place has its own */
    server->limits = *limits;
    if (!socket_place_open(&server->place, setup->path, setup->mode, error)) {
        free(server);
        return NULL;
    }
    int result = uv_poll_init(setup->loop, &server->listener, server->place.listen_fd);
    if (result != 0) {
        error_set(error, "--socket %s: cannot watch it: %s", setup->path, uv_strerror(result));
        socket_place_close(&server->place);
        free(server);
        return NULL;
    }
    server->attached = memory_zeroed(setup->board->count, sizeof(struct socket_client *));
    uv_timer_init(setup->loop, &server->pause);
    server->open_handles = 2;
    server->listener.data = server;
    server->pause.data = server;
    uv_poll_start(&server->listener, UV_READABLE, on_connections);
    server->observer.changed = on_board_changed;
    board_observe(setup->board, &server->observer);
    log_event(LOG_INFO, "listening", LOG_TEXT("listener", "socket"), LOG_TEXT("path", setup->path));
    return server;
}

struct socket_server *socket_create(const struct socket_setup *setup, struct error *error) {
    /* A quarter of what the process may open, like each HTTP listener: the store needs some too. */
    struct socket_limits limits = socket_limits_default;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < limits.clients) {
        size_t share = files.rlim_cur / 4 > CLIENTS_LEAST ? files.rlim_cur / 4 : CLIENTS_LEAST;
        limits.clients = share;
        limits.watchers = share / 2;
        limits.refused = share / 4;
    }
    return socket_create_limited(setup, &limits, error);
}

static void go_on(struct socket_server *server) {
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        if (client->phase == PHASE_SERVING) {
            socket_client_process(client);
        }
    }
}

/* All are answered before any of them goes on: its next request may be a resign again. */
void socket_resigned(struct socket_server *server, size_t election) {
    const struct board_entry *entry = &server->setup.board->entries[election];
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        if (client->phase == PHASE_RESIGNING && client->entry == entry) {
            socket_client_set_phase(client, PHASE_SERVING);
            client->active_ms = uv_now(server->setup.loop);
            socket_client_count(client, CODE_OK);
            socket_client_send(client, "ok\n", 3);
        }
    }
    if (server->attached[election] != NULL) {
        socket_attach_resigned(server->attached[election]);
    }
    go_on(server);
}

void socket_drain(struct socket_server *server) {
    server->draining = true;
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        if (client->phase == PHASE_RESIGNING) {
            socket_client_set_phase(client, PHASE_SERVING);
            socket_client_fault(client, FAULT_SHUTTING_DOWN, "the process is ending");
        }
    }
    go_on(server);
}

static void on_own_closed(uv_handle_t *handle) {
    socket_server_unref(handle->data);
}

void socket_close(struct socket_server *server, void (*closed)(void *context), void *context) {
    server->closed = closed;
    server->closed_context = context;
    board_unobserve(&server->observer);
    uv_close((uv_handle_t *)&server->listener, on_own_closed);
    uv_close((uv_handle_t *)&server->pause, on_own_closed);
    socket_place_close(&server->place);
    for (struct socket_client *client = server->clients; client != NULL; client = client->next) {
        socket_client_close(client);
    }
}
