/*
 * bench_echo PATH: libuv's echo server on a Unix socket: what is read is written back, and nothing
 * is looked at.
 */
#include "listen_unix.h"

#include <stdlib.h>
#include <uv.h>

struct writing {
    uv_write_t request;
    uv_buf_t buffer;
};

static void on_closed(uv_handle_t *handle) {
    free(handle);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(malloc(512), 512);
}

static void on_written(uv_write_t *request, int status) {
    struct writing *writing = (struct writing *)request;
    (void)status;
    free(writing->buffer.base);
    free(writing);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer) {
    if (got <= 0) {
        free(buffer->base);
        if (got < 0) {
            uv_close((uv_handle_t *)stream, on_closed);
        }
        return;
    }
    struct writing *writing = malloc(sizeof *writing);
    if (writing == NULL) {
        abort();
    }
    writing->buffer = uv_buf_init(buffer->base, (unsigned)got);
    if (uv_write(&writing->request, stream, &writing->buffer, 1, on_written) != 0) {
        on_written(&writing->request, 0);
    }
}

static void on_connection(uv_stream_t *server, int status) {
    uv_pipe_t *client = malloc(sizeof *client);
    if (client == NULL || status != 0) {
        abort();
    }
    (void)uv_pipe_init(server->loop, client, 0);
    if (uv_accept(server, (uv_stream_t *)client) != 0 ||
        uv_read_start((uv_stream_t *)client, on_alloc, on_read) != 0) {
        uv_close((uv_handle_t *)client, on_closed);
    }
}

int main(int argc, char **argv) {
    uv_pipe_t server;
    if (argc != 2) {
        return 64;
    }
    if (uv_pipe_init(uv_default_loop(), &server, 0) != 0 ||
        uv_pipe_open(&server, listen_unix(argv[1])) != 0 ||
        uv_listen((uv_stream_t *)&server, 128, on_connection) != 0) {
        return 1;
    }
    say_ready();
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
