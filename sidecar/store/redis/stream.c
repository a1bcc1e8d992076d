#include "store/redis/stream.h"

#include "base/memory.h"
#include "store/redis/reader.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_SIZE 16384
#define PLAIN_SIZE 4096
#define GOODBYE_SIZE 128
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
    struct store_lives *lives;
    struct redis_tls_session *tls; /* NULL: plain */
    bool connected;
    bool open; /* the owner has been told */
    bool closing;
    char buffer[READ_SIZE]; /* last: most of its pages are never touched */
};

struct write {
    uv_write_t request;
    struct redis_stream *stream;
    char *bytes;
    size_t size;
    bool encrypted; /* else they are hiredis' */
};

static const char hung_up[] = "the server closed the connection";

static void on_closed(uv_handle_t *handle) {
    struct redis_stream *stream = handle->data;
    struct store_lives *lives = stream->lives;
    redis_reader_finish(&stream->reader);
    if (stream->tls != NULL) {
        redis_tls_end(stream->tls);
    }
    free(stream);
    store_lives_end(lives);
}

/* Only what the socket takes at once. */
static void say_goodbye(struct redis_stream *stream) {
    char bytes[GOODBYE_SIZE];
    redis_tls_close(stream->tls);
    size_t size = redis_tls_pending(stream->tls);
    if (size > 0 && size <= sizeof bytes) {
        redis_tls_take(stream->tls, bytes, size);
        uv_buf_t buffer = uv_buf_init(bytes, (unsigned)size);
        (void)uv_try_write(&stream->uv.stream, &buffer, 1);
    }
}

void redis_stream_close(struct redis_stream *stream) {
    if (!stream->closing) {
        stream->closing = true;
        if (stream->tls != NULL) {
            say_goodbye(stream);
        }
        uv_close(&stream->uv.handle, on_closed);
    }
}

static void down(struct redis_stream *stream, const char *why) {
    if (!stream->closing) {
        stream->events->on_down(stream->context,
                                stream->tls != NULL ? redis_tls_ended(stream->tls, why) : why);
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

static void forget_bytes(char *bytes, size_t size, bool encrypted) {
    if (encrypted) {
        free(bytes);
        return;
    }
    explicit_bzero(bytes, size); /* a password may be in it */
    redisFreeCommand(bytes);
}

static void on_written(uv_write_t *request, int status) {
    struct write *write = request->data;
    struct redis_stream *stream = write->stream;
    forget_bytes(write->bytes, write->size, write->encrypted);
    free(write);
    /* Who hung up may have said why before that: reading goes on to the end, and tells of it. */
    if (status != 0 && status != UV_EPIPE && status != UV_ECONNRESET) {
        down(stream, uv_strerror(status));
    }
}

/* The bytes are given up in any case; as a rule the socket takes them at once, and nothing has to
 * be kept. */
static bool send_bytes(struct redis_stream *stream, char *bytes, size_t size, bool encrypted) {
    uv_buf_t buffer = uv_buf_init(bytes, (unsigned)size);
    int taken = uv_try_write(&stream->uv.stream, &buffer, 1);
    if (taken >= 0 && (size_t)taken == size) {
        forget_bytes(bytes, size, encrypted);
        return true;
    }
    unsigned offset = taken > 0 ? (unsigned)taken : 0;
    struct write *write = memory_zeroed(1, sizeof *write);
    *write = (struct write){.stream = stream, .bytes = bytes, .size = size, .encrypted = encrypted};
    write->request.data = write;
    buffer = uv_buf_init(bytes + offset, (unsigned)size - offset);
    int status = uv_write(&write->request, &stream->uv.stream, &buffer, 1, on_written);
    if (status != 0) {
        on_written(&write->request, 0);
    }
    return status == 0;
}

/* Sends what TLS has made. */
static bool send_encrypted(struct redis_stream *stream) {
    size_t size = redis_tls_pending(stream->tls);
    if (size == 0) {
        return true;
    }
    char *bytes = memory_zeroed(1, size);
    redis_tls_take(stream->tls, bytes, size);
    return send_bytes(stream, bytes, size, true);
}

static void tell_open(struct redis_stream *stream) {
    stream->open = true;
    stream->events->on_open(stream->context);
}

/* Does all that TLS can do with what came. */
static void turn_tls(struct redis_stream *stream) {
    char plain[PLAIN_SIZE];
    size_t size = 0;
    enum redis_tls_result result;
    do {
        result = redis_tls_next(stream->tls, plain, sizeof plain, &size);
        if (result == REDIS_TLS_OPEN) {
            tell_open(stream);
        } else if (result == REDIS_TLS_DATA) {
            redis_reader_feed(&stream->reader, plain, size);
            deliver(stream);
        }
    } while (!stream->closing && (result == REDIS_TLS_OPEN || result == REDIS_TLS_DATA));
    if (stream->closing) {
        return;
    }
    bool sent = send_encrypted(stream); /* an alert too, when it is broken */
    if (result == REDIS_TLS_CLOSED) {
        down(stream, hung_up);
    } else if (result == REDIS_TLS_BROKEN || !sent) {
        down(stream, "the connection broke");
    }
}

static void on_bytes(struct redis_stream *stream, const char *bytes, size_t size) {
    if (stream->tls == NULL) {
        redis_reader_feed(&stream->reader, bytes, size);
        deliver(stream);
        return;
    }
    while (size > 0 && !stream->closing) {
        size_t piece = size < REDIS_TLS_FEED_MAX ? size : REDIS_TLS_FEED_MAX;
        redis_tls_feed(stream->tls, bytes, piece);
        turn_tls(stream);
        bytes += piece;
        size -= piece;
    }
}

static void on_read(uv_stream_t *uv, ssize_t size, const uv_buf_t *buffer) {
    struct redis_stream *stream = uv->data;
    if (size > 0) {
        on_bytes(stream, buffer->base, (size_t)size);
    } else if (size < 0) {
        down(stream, size == UV_EOF ? hung_up : uv_strerror((int)size));
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
    stream->connected = status == 0;
    if (status != 0) {
        stream->events->on_down(stream->context, uv_strerror(status)); /* no TLS in that yet */
    } else if (stream->tls != NULL) {
        turn_tls(stream);
    } else {
        tell_open(stream);
    }
}

static struct redis_stream *stream_new(struct store_lives *lives) {
    struct redis_stream *stream = memory_grow(NULL, 1, sizeof *stream);
    memset(stream, 0, offsetof(struct redis_stream, buffer));
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
                                      struct store_lives *lives, const char **why) {
    struct redis_stream *stream = stream_new(lives);
    int status = uv_tcp_init_ex(loop, &stream->uv.tcp, address->sa_family);
    if (status != 0) {
        *why = uv_strerror(status);
        return stream_drop(stream);
    }
    store_lives_begin(lives);
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
                                        struct store_lives *lives, const char **why) {
    struct redis_stream *stream = stream_new(lives);
    int status = uv_pipe_init(loop, &stream->uv.pipe, 0);
    if (status != 0) {
        *why = uv_strerror(status);
        return stream_drop(stream);
    }
    store_lives_begin(lives);
    stream->uv.handle.data = stream;
    uv_pipe_connect(&stream->connect, &stream->uv.pipe, path, on_connect);
    return stream;
}

void redis_stream_own(struct redis_stream *stream, const struct redis_stream_events *events,
                      void *context) {
    stream->events = events;
    stream->context = context;
}

void redis_stream_secure(struct redis_stream *stream, struct redis_tls_session *session) {
    stream->tls = session;
}

bool redis_stream_send(struct redis_stream *stream, char *bytes, size_t size) {
    if (stream->tls == NULL) {
        return send_bytes(stream, bytes, size, false);
    }
    bool taken = redis_tls_write(stream->tls, bytes, size);
    explicit_bzero(bytes, size);
    redisFreeCommand(bytes);
    return taken && send_encrypted(stream);
}

const char *redis_stream_late(const struct redis_stream *stream) {
    if (!stream->connected) {
        return "no connection in time";
    }
    return stream->open ? "connected, but no answer in time"
                        : "connected, but no TLS handshake in time: is that the port for TLS?";
}
