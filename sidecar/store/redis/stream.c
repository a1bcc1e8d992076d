#include "store/redis/stream.h"

#include "base/memory.h"
#include "store/redis/reader.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define READ_SIZE 16384
/* When a path that has gone silent is given up. The requests have timeouts of their own. */
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT 2
#define USER_TIMEOUT_MS 15000

struct redis_stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_connect_t connect;
    struct redis_reader reader;
    const struct redis_stream_events *events;
    void *context;
    struct redis_lives *lives;
    bool closing;
    char buffer[READ_SIZE];
};

struct write {
    uv_write_t request;
    struct redis_stream *stream;
    char *bytes;
};

static void on_closed(uv_handle_t *handle) {
    struct redis_stream *stream = handle->data;
    struct redis_lives *lives = stream->lives;
    redis_reader_finish(&stream->reader);
    free(stream);
    redis_lives_end(lives);
}

void redis_stream_close(struct redis_stream *stream) {
    if (!stream->closing) {
        stream->closing = true;
        uv_close(&stream->uv.handle, on_closed);
    }
}

static void down(struct redis_stream *stream, const char *why) {
    if (!stream->closing) {
        stream->events->on_down(stream->context, why);
    }
}

static void on_allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer) {
    struct redis_stream *stream = handle->data;
    (void)wanted;
    *buffer = uv_buf_init(stream->buffer, sizeof stream->buffer);
}

static void deliver(struct redis_stream *stream) {
    redisReply *reply = NULL;
    enum redis_reader_result result = REDIS_READER_NONE;
    while (!stream->closing &&
           (result = redis_reader_next(&stream->reader, &reply)) == REDIS_READER_REPLY) {
        stream->events->on_reply(stream->context, reply);
        freeReplyObject(reply);
    }
    if (result == REDIS_READER_BROKEN) {
        down(stream, stream->reader.problem);
    }
}

static void on_read(uv_stream_t *uv, ssize_t size, const uv_buf_t *buffer) {
    struct redis_stream *stream = uv->data;
    if (size > 0) {
        redis_reader_feed(&stream->reader, buffer->base, (size_t)size);
        deliver(stream);
    } else if (size == UV_EOF) {
        down(stream, "the server closed the connection");
    } else if (size < 0) {
        down(stream, uv_strerror((int)size));
    }
}

static void on_connect(uv_connect_t *request, int status) {
    struct redis_stream *stream = request->data;
    if (stream->closing) {
        return;
    }
    if (status == 0) {
        status = uv_read_start(&stream->uv.stream, on_allocate, on_read);
    }
    if (status != 0) {
        down(stream, uv_strerror(status));
    } else {
        stream->events->on_open(stream->context);
    }
}

static struct redis_stream *stream_new(struct redis_lives *lives) {
    struct redis_stream *stream = memory_zeroed(1, sizeof *stream);
    stream->lives = lives;
    stream->connect.data = stream;
    redis_reader_init(&stream->reader);
    return stream;
}

/* For a stream whose handle could not be made. */
static struct redis_stream *stream_drop(struct redis_stream *stream) {
    redis_reader_finish(&stream->reader);
    free(stream);
    return NULL;
}

static void set_option(uv_os_fd_t fd, int name, int value) {
    /* Without it a dead path is only noticed later. */
    (void)setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value);
}

static void tune(uv_tcp_t *tcp) {
    uv_os_fd_t fd = -1;
    (void)uv_tcp_nodelay(tcp, 1);
    (void)uv_tcp_keepalive(tcp, 1, KEEPALIVE_IDLE_S);
    if (uv_fileno((const uv_handle_t *)tcp, &fd) == 0) {
        set_option(fd, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        set_option(fd, TCP_KEEPCNT, KEEPALIVE_COUNT);
        set_option(fd, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
    }
}

struct redis_stream *redis_stream_tcp(uv_loop_t *loop, const struct sockaddr *address,
                                      struct redis_lives *lives, const char **why) {
    struct redis_stream *stream = stream_new(lives);
    int status = uv_tcp_init_ex(loop, &stream->uv.tcp, address->sa_family);
    if (status != 0) {
        *why = uv_strerror(status);
        return stream_drop(stream);
    }
    redis_lives_begin(lives);
    stream->uv.handle.data = stream;
    tune(&stream->uv.tcp);
    status = uv_tcp_connect(&stream->connect, &stream->uv.tcp, address, on_connect);
    if (status != 0) {
        *why = uv_strerror(status);
        redis_stream_close(stream);
        return NULL;
    }
    return stream;
}

struct redis_stream *redis_stream_local(uv_loop_t *loop, const char *path,
                                        struct redis_lives *lives, const char **why) {
    struct redis_stream *stream = stream_new(lives);
    int status = uv_pipe_init(loop, &stream->uv.pipe, 0);
    if (status != 0) {
        *why = uv_strerror(status);
        return stream_drop(stream);
    }
    redis_lives_begin(lives);
    stream->uv.handle.data = stream;
    uv_pipe_connect(&stream->connect, &stream->uv.pipe, path, on_connect);
    return stream;
}

void redis_stream_own(struct redis_stream *stream, const struct redis_stream_events *events,
                      void *context) {
    stream->events = events;
    stream->context = context;
}

static void on_written(uv_write_t *request, int status) {
    struct write *write = request->data;
    struct redis_stream *stream = write->stream;
    redisFreeCommand(write->bytes);
    free(write);
    if (status != 0) {
        down(stream, uv_strerror(status));
    }
}

bool redis_stream_send(struct redis_stream *stream, char *bytes, size_t size) {
    struct write *write = memory_zeroed(1, sizeof *write);
    uv_buf_t buffer = uv_buf_init(bytes, (unsigned)size);
    write->request.data = write;
    write->stream = stream;
    write->bytes = bytes;
    if (uv_write(&write->request, &stream->uv.stream, &buffer, 1, on_written) != 0) {
        redisFreeCommand(bytes);
        free(write);
        return false;
    }
    return true;
}
