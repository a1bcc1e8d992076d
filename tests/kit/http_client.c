#include "kit/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t now_ms(void) {
    return uv_hrtime() / 1000000;
}

/* One turn of the loop, after waiting a little for it or for the descriptor. */
static void turn(uv_loop_t *loop, int fd, short events) {
    uv_run(loop, UV_RUN_NOWAIT);
    int timeout_ms = uv_backend_timeout(loop);
    if (timeout_ms < 0 || timeout_ms > 20) {
        timeout_ms = 20;
    }
    struct pollfd polls[2] = {{.fd = uv_backend_fd(loop), .events = POLLIN},
                              {.fd = fd, .events = events}};
    poll(polls, fd >= 0 ? 2 : 1, timeout_ms);
    uv_run(loop, UV_RUN_NOWAIT);
}

void client_turn(uv_loop_t *loop, int fd) {
    turn(loop, fd, POLLIN);
}

int client_connect(const char *address, uint16_t port) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    assert_true(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    /* The backlog takes it, whether or not the loop turns. */
    int status = is_v4 ? connect(fd, (const struct sockaddr *)&v4, sizeof v4)
                       : connect(fd, (const struct sockaddr *)&v6, sizeof v6);
    assert_int_equal(status, 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

bool client_send(uv_loop_t *loop, int fd, const void *bytes, size_t length) {
    const char *next = bytes;
    uint64_t give_up_ms = now_ms() + CLIENT_WITHIN_MS;
    while (length > 0 && now_ms() < give_up_ms) {
        ssize_t sent = send(fd, next, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return false;
        }
        if (sent < 0) {
            turn(loop, fd, POLLOUT);
            continue;
        }
        next += sent;
        length -= (size_t)sent;
    }
    assert_int_equal(length, 0);
    return true;
}

/* One byte of the stream: 1, 0 at its end, -1 when none came in time. */
static int read_byte(uv_loop_t *loop, int fd, char *byte, uint64_t give_up_ms) {
    for (;;) {
        ssize_t count = recv(fd, byte, 1, 0);
        if (count >= 0) {
            return (int)count;
        }
        if (errno != EAGAIN) {
            return 0; /* reset */
        }
        if (now_ms() >= give_up_ms) {
            return -1;
        }
        turn(loop, fd, POLLIN);
    }
}

static bool read_head(uv_loop_t *loop, int fd, struct reply *reply, uint64_t give_up_ms) {
    size_t length = 0;
    while (length + 1 < sizeof reply->head) {
        int count = read_byte(loop, fd, &reply->head[length], give_up_ms);
        if (count <= 0) {
            reply->closed = count == 0;
            return false;
        }
        reply->head[++length] = '\0';
        if (length >= 4 && strcmp(reply->head + length - 4, "\r\n\r\n") == 0) {
            return true;
        }
    }
    return false;
}

static bool read_body(uv_loop_t *loop, int fd, struct reply *reply, uint64_t give_up_ms) {
    const char *text = reply_header(reply, "Content-Length");
    size_t length = text != NULL ? strtoul(text, NULL, 10) : 0;
    reply->body = calloc(1, length + 1);
    assert_non_null(reply->body);
    while (reply->length < length) {
        ssize_t count = recv(fd, reply->body + reply->length, length - reply->length, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN)) {
            reply->closed = true;
            return false;
        }
        if (count < 0 && now_ms() >= give_up_ms) {
            return false;
        }
        if (count < 0) {
            turn(loop, fd, POLLIN);
            continue;
        }
        reply->length += (size_t)count;
    }
    return true;
}

void client_receive(uv_loop_t *loop, int fd, bool head_only, struct reply *reply) {
    *reply = (struct reply){.status = 0};
    uint64_t give_up_ms = now_ms() + CLIENT_WITHIN_MS;
    if (!read_head(loop, fd, reply, give_up_ms) ||
        (!head_only && !read_body(loop, fd, reply, give_up_ms))) {
        return;
    }
    assert_memory_equal(reply->head, "HTTP/1.", 7);
    reply->status = (int)strtol(reply->head + strlen("HTTP/1.1 "), NULL, 10);
}

void client_ask(uv_loop_t *loop, const char *address, uint16_t port, const char *request,
                struct reply *reply) {
    int fd = client_connect(address, port);
    client_send(loop, fd, request, strlen(request));
    client_receive(loop, fd, strncmp(request, "HEAD ", 5) == 0, reply);
    close(fd);
}

bool client_wait_closed(uv_loop_t *loop, int fd) {
    uint64_t give_up_ms = now_ms() + CLIENT_WITHIN_MS;
    char byte = 0;
    int count = 1;
    while (count == 1) {
        count = read_byte(loop, fd, &byte, give_up_ms);
    }
    return count == 0;
}

bool client_run_until(uv_loop_t *loop, bool (*done)(void *context), void *context) {
    uint64_t give_up_ms = now_ms() + CLIENT_WITHIN_MS;
    while (!done(context)) {
        if (now_ms() >= give_up_ms) {
            return false;
        }
        turn(loop, -1, 0);
    }
    return true;
}

const char *reply_header(const struct reply *reply, const char *name) {
    static char value[512];
    size_t length = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line != NULL;
         line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *text = line + length + 1;
            text += strspn(text, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(text, "\r"), text);
            return value;
        }
    }
    return NULL;
}

void reply_free(struct reply *reply) {
    free(reply->body);
    reply->body = NULL;
}
