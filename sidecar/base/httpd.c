#include "base/httpd_inside.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* New connections taken in one turn of the loop. */
#define ACCEPT_BATCH 16
/* Connections that are cut off but that the library has not closed yet. */
#define LIMIT_SLACK (2 * ACCEPT_BATCH)
#define LIMIT_LEAST 8
#define ACCEPT_PAUSE_MS 100
#define CLOSE_WITHIN_MS 1000
#define POOL_BYTES ((size_t)16 * 1024) /* for one request: line, headers, reply's head */
#define LOG_EVERY_MS 10000

static void drive(struct httpd *httpd);

/* The library tells of a connection's beginning, and of its end just before it closes it. */
static void on_connection(void *cls, struct MHD_Connection *handle, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    struct httpd *httpd = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct httpd_connection *connection = memory_zeroed(1, sizeof *connection);
        connection->fd =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        httpd_connection_add(httpd, connection, &httpd->busy);
        *context = connection;
        return;
    }
    struct httpd_connection *connection = *context;
    *context = NULL;
    httpd_connection_remove(httpd, connection);
    free(connection);
}

__attribute__((format(printf, 2, 0))) static void on_library_log(void *cls, const char *format,
                                                                 va_list arguments) {
    const struct httpd *httpd = cls;
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    /* What strangers send can bring these about, so they are not worth more. */
    log_event(LOG_DEBUG, "http-library", LOG_TEXT("listener", httpd->setup.listener),
              LOG_TEXT("text", text));
}

static void log_exhausted(const struct httpd *httpd, int cause) {
    static struct log_limit limit;
    uint64_t suppressed = 0;
    if (log_allow(&limit, LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_WARN, "accept-failed", LOG_TEXT("listener", httpd->setup.listener),
                  LOG_TEXT("error", strerror(cause)), LOG_NUMBER("suppressed", suppressed));
    }
}

static void on_accept(uv_poll_t *poll, int status, int events);

static void accept_start(struct httpd *httpd) {
    httpd->accept_again_ms = 0;
    for (size_t i = 0; i < httpd->accept_poll_count; i++) {
        uv_poll_start(&httpd->accept_polls[i], UV_READABLE, on_accept);
    }
}

/* A listening socket stays readable while nothing can be accepted: looking away for a moment keeps
 * the loop from spinning. */
static void accept_pause(struct httpd *httpd, int cause) {
    log_exhausted(httpd, cause);
    httpd_cut_off_one(httpd);
    for (size_t i = 0; i < httpd->accept_poll_count; i++) {
        uv_poll_stop(&httpd->accept_polls[i]);
    }
    httpd->accept_again_ms = uv_now(httpd->setup.loop) + ACCEPT_PAUSE_MS;
}

/* Zero: go on; else the cause to pause for. */
static int accept_one(struct httpd *httpd, int listener) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int fd = accept4(listener, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return exhausted || errno == EAGAIN ? errno : 0;
    }
    if (httpd->connection_count + httpd->held_count >=
        httpd->connection_limit + httpd->hold_limit) {
        httpd_cut_off_one(httpd);
    }
    /* Closes the descriptor when it fails, and says why in the log. */
    MHD_add_connection(httpd->daemon, fd, (const struct sockaddr *)&address, length);
    return 0;
}

static void on_accept(uv_poll_t *poll, int status, int events) {
    struct httpd *httpd = poll->data;
    (void)events;
    size_t index = (size_t)(poll - httpd->accept_polls);
    int cause = status < 0 ? -status : 0;
    for (int i = 0; i < ACCEPT_BATCH && cause == 0; i++) {
        cause = accept_one(httpd, httpd->listeners.sockets[index].fd);
    }
    if (cause != 0 && cause != EAGAIN) {
        accept_pause(httpd, cause);
    }
    drive(httpd);
}

static void on_handle_closed(uv_handle_t *handle) {
    struct httpd *httpd = handle->data;
    if (--httpd->open_handles > 0) {
        return;
    }
    void (*closed)(void *context) = httpd->closed;
    void *context = httpd->closed_context;
    free(httpd);
    if (closed != NULL) {
        closed(context);
    }
}

/* The library's descriptor leaves the loop before the library goes. */
static void finish(struct httpd *httpd) {
    if (uv_is_closing((uv_handle_t *)&httpd->timer)) {
        return;
    }
    uv_poll_stop(&httpd->poll);
    httpd_last_drop(httpd);
    MHD_stop_daemon(httpd->daemon);
    httpd->daemon = NULL;
    uv_close((uv_handle_t *)&httpd->poll, on_handle_closed);
    uv_close((uv_handle_t *)&httpd->timer, on_handle_closed);
}

static void stop_listening(struct httpd *httpd) {
    for (size_t i = 0; i < httpd->accept_poll_count; i++) {
        uv_poll_stop(&httpd->accept_polls[i]);
        uv_close((uv_handle_t *)&httpd->accept_polls[i], on_handle_closed);
    }
    httpd->accept_poll_count = 0;
    listen_close(&httpd->listeners);
}

static void on_timer(uv_timer_t *timer) {
    struct httpd *httpd = timer->data;
    httpd->in_timer = true;
    drive(httpd);
}

/* When the library or one of our limits has to be looked at again. */
static void arm(struct httpd *httpd, uint64_t next_ms) {
    uint64_t now_ms = uv_now(httpd->setup.loop);
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    if (MHD_get_timeout(httpd->daemon, &library_ms) == MHD_YES && now_ms + library_ms < next_ms) {
        next_ms = now_ms + library_ms;
    }
    if (next_ms == UINT64_MAX) {
        uv_timer_stop(&httpd->timer);
        return;
    }
    uint64_t left_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    /* Set to "at once" from within its own call, a timer is run again before the loop has looked
     * at anything else: a client that never stops asking would have it for itself. */
    if (left_ms == 0 && httpd->in_timer) {
        left_ms = 1;
    }
    httpd->in_timer = false;
    uv_timer_start(&httpd->timer, on_timer, left_ms, 0);
}

static uint64_t enforce_limits(struct httpd *httpd) {
    uint64_t next_ms = UINT64_MAX;
    next_ms = httpd_cut_off_late(httpd, &httpd->busy, httpd->setup.request_ms, next_ms);
    next_ms = httpd_cut_off_late(httpd, &httpd->idle, httpd->setup.idle_ms, next_ms);
    next_ms = httpd_cut_off_gone(httpd, next_ms);
    if (httpd->accept_again_ms != 0 && !httpd->closing) {
        if (httpd->accept_again_ms <= uv_now(httpd->setup.loop)) {
            accept_start(httpd);
        } else if (httpd->accept_again_ms < next_ms) {
            next_ms = httpd->accept_again_ms;
        }
    }
    return next_ms;
}

/* The one place where the library runs. Its descriptors are edge-triggered, so whoever runs it has
 * to ask for its timeout afterwards: data may wait that no event will tell of. */
static void drive(struct httpd *httpd) {
    if (httpd->running || httpd->daemon == NULL) {
        return;
    }
    httpd->running = true;
    if (httpd->closing) {
        httpd_resume_all(httpd); /* the library ends the process over a suspended connection */
    }
    httpd->soon = false;
    MHD_run(httpd->daemon);
    httpd->running = false;
    uint64_t next_ms = enforce_limits(httpd);
    if (httpd->closing) {
        httpd_cut_off_waiting(httpd);
        if (httpd->connection_count == 0 || uv_now(httpd->setup.loop) >= httpd->close_by_ms) {
            finish(httpd);
            return;
        }
        next_ms = next_ms < httpd->close_by_ms ? next_ms : httpd->close_by_ms;
    }
    arm(httpd, httpd->soon ? 0 : next_ms);
}

void httpd_run_soon(struct httpd *httpd) {
    httpd->soon = true; /* for drive(), which may be under way */
    uv_timer_start(&httpd->timer, on_timer, 0, 0);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    drive(poll->data);
}

/* A share of what the process may open: two listeners, the socket and the store live on it. */
static unsigned limit_connections(unsigned wanted, unsigned share) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / share < wanted) {
        wanted = (unsigned)(files.rlim_cur / share);
    }
    return wanted > LIMIT_LEAST ? wanted : LIMIT_LEAST;
}

static struct MHD_Daemon *start_library(struct httpd *httpd) {
    /* Integers have to be of exactly these types: this goes through varargs. */
    const unsigned limit = httpd->connection_limit + httpd->hold_limit + LIMIT_SLACK;
    const size_t pool_bytes = POOL_BYTES;
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    if (httpd->hold_limit > 0) {
        flags |= MHD_ALLOW_SUSPEND_RESUME;
    }
    return MHD_start_daemon(flags, 0, NULL, NULL, httpd_request_handle, httpd,
                            MHD_OPTION_EXTERNAL_LOGGER, on_library_log, httpd,
                            MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            pool_bytes, MHD_OPTION_URI_LOG_CALLBACK, httpd_request_begin, httpd,
                            MHD_OPTION_NOTIFY_COMPLETED, httpd_request_end, httpd,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, httpd, MHD_OPTION_END);
}

static int start_handles(struct httpd *httpd) {
    uv_loop_t *loop = httpd->setup.loop;
    uv_timer_init(loop, &httpd->timer);
    httpd->timer.data = httpd;
    httpd->poll.data = httpd;
    int fd = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int status = uv_poll_init(loop, &httpd->poll, fd);
    if (status != 0) {
        httpd->open_handles = 1;
        return status;
    }
    httpd->open_handles = 2;
    uv_poll_start(&httpd->poll, UV_READABLE, on_poll);
    for (size_t i = 0; i < httpd->listeners.count && status == 0; i++) {
        uv_poll_t *poll = &httpd->accept_polls[i];
        poll->data = httpd;
        status = uv_poll_init(loop, poll, httpd->listeners.sockets[i].fd);
        httpd->accept_poll_count += status == 0;
    }
    httpd->open_handles += (unsigned)httpd->accept_poll_count;
    return status;
}

static struct httpd *fail(struct httpd *httpd, int cause, struct error *error) {
    error_set(error, "%s: cannot start the HTTP server: %s", httpd->setup.option, strerror(cause));
    if (httpd->open_handles == 0) {
        listen_close(&httpd->listeners);
        free(httpd);
        return NULL;
    }
    stop_listening(httpd);
    if (httpd->open_handles == 1) { /* the timer alone: there is no poll to close */
        MHD_stop_daemon(httpd->daemon);
        httpd->daemon = NULL;
        uv_close((uv_handle_t *)&httpd->timer, on_handle_closed);
    } else {
        finish(httpd);
    }
    return NULL;
}

struct httpd *httpd_create(const struct httpd_setup *setup, struct error *error) {
    struct listen_set listeners;
    if (!listen_open(&listeners, setup->option, setup->host, setup->port, error)) {
        return NULL;
    }
    struct httpd *httpd = memory_zeroed(1, sizeof *httpd);
    httpd->setup = *setup;
    httpd->listeners = listeners;
    httpd->connection_limit = limit_connections(setup->connection_limit, 4);
    httpd->hold_limit = setup->hold_limit > 0 ? limit_connections(setup->hold_limit, 8) : 0;
    httpd->daemon = start_library(httpd);
    if (httpd->daemon == NULL) {
        return fail(httpd, errno != 0 ? errno : ENOMEM, error);
    }
    int status = start_handles(httpd);
    if (status != 0) {
        return fail(httpd, -status, error);
    }
    accept_start(httpd);
    for (size_t i = 0; i < listeners.count; i++) {
        log_event(LOG_INFO, "listening", LOG_TEXT("listener", setup->listener),
                  LOG_TEXT("address", listeners.sockets[i].address),
                  LOG_NUMBER("port", listeners.sockets[i].port));
    }
    return httpd;
}

bool httpd_is_loopback(const struct httpd *httpd) {
    return httpd->listeners.loopback;
}

uint16_t httpd_port(const struct httpd *httpd) {
    return httpd->listeners.sockets[0].port;
}

void httpd_close(struct httpd *httpd, void (*closed)(void *context), void *context) {
    httpd->closed = closed;
    httpd->closed_context = context;
    httpd->closing = true;
    httpd->close_by_ms = uv_now(httpd->setup.loop) + CLOSE_WITHIN_MS;
    stop_listening(httpd);
    /* From the timer: this may be called from a handler, inside the library. */
    uv_timer_start(&httpd->timer, on_timer, 0, 0);
}
