/*
 * bench_fixed BODY: libmicrohttpd on a libuv loop, as its manual has it for a loop of one's own:
 * its epoll descriptor is watched, MHD_run() does all the rest, accepting included. Every request
 * is answered by the same 200 and BODY. Says its port on stdout.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct server {
    struct MHD_Daemon *daemon;
    struct MHD_Response *response;
    uv_poll_t poll;
    uv_timer_t timer;
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request) {
    static int seen;
    struct server *server = context;
    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    (void)upload_size;
    if (*request == NULL) { /* the headers are there; the reply comes at the end of the request */
        *request = &seen;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, server->response);
}

static void on_timer(uv_timer_t *timer);

static void run(struct server *server) {
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    (void)MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES) {
        (void)uv_timer_start(&server->timer, on_timer, timeout_ms, 0);
    } else {
        (void)uv_timer_stop(&server->timer);
    }
}

static void on_timer(uv_timer_t *timer) {
    run(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    run(poll->data);
}

static void watch(struct server *server) {
    const union MHD_DaemonInfo *epoll =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->poll.data = server;
    server->timer.data = server;
    if (epoll == NULL || uv_timer_init(uv_default_loop(), &server->timer) != 0 ||
        uv_poll_init(uv_default_loop(), &server->poll, epoll->epoll_fd) != 0 ||
        uv_poll_start(&server->poll, UV_READABLE, on_readable) != 0) {
        abort();
    }
}

int main(int argc, char **argv) {
    struct server server = {0};
    if (argc != 2) {
        return 64;
    }
    server.response =
        MHD_create_response_from_buffer(strlen(argv[1]), argv[1], MHD_RESPMEM_PERSISTENT);
    (void)MHD_add_response_header(server.response, "Content-Type", "application/json");
    (void)MHD_add_response_header(server.response, "Cache-Control", "no-store");
    server.daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, &server,
                                     MHD_OPTION_CONNECTION_LIMIT, 128U, MHD_OPTION_END);
    if (server.daemon == NULL) {
        return 1;
    }
    watch(&server);
    (void)printf("%u\n", MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
