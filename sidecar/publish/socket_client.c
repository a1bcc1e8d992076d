#include "publish/socket_parts.h"

#include "base/memory.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of socket_fault; the names are a stable interface. */
static const char *const fault_names[] = {
    [FAULT_UNKNOWN_ELECTION] = "unknown-election",
    [FAULT_NAME_NEEDED] = "name-needed",
    [FAULT_BAD_REQUEST] = "bad-request",
    [FAULT_TOO_LONG] = "too-long",
    [FAULT_BUSY] = "busy",
    [FAULT_TOO_MANY] = "too-many",
    [FAULT_SHUTTING_DOWN] = "shutting-down",
};

static char discarded[65536]; /* where the input of refused clients goes */

static uv_stream_t *stream_of(struct socket_client *client) {
    return (uv_stream_t *)&client->pipe;
}

void socket_client_count(struct socket_client *client, enum counter_code code) {
    client->server->setup.counters->api_requests[LISTENER_SOCKET][code]++;
}

void socket_client_set_phase(struct socket_client *client, enum socket_phase phase) {
    struct socket_server *server = client->server;
    enum socket_phase before = client->phase;
    server->phases[before]--;
    server->phases[phase]++;
    client->phase = phase;
    server->setup.counters->watchers = server->phases[PHASE_WATCHING];
    if (before == PHASE_ATTACHED && phase != PHASE_ATTACHED) {
        socket_attach_ended(client);
    }
}

static void on_handle_closed(uv_handle_t *handle) {
    struct socket_client *client = handle->data;
    if (--client->open_handles > 0) {
        return;
    }
    struct socket_server *server = client->server;
    server->phases[PHASE_CLOSING]--;
    *client->link = client->next;
    if (client->next != NULL) {
        client->next->link = client->link;
    }
    free(client);
    socket_server_unref(server);
}

void socket_client_close(struct socket_client *client) {
    if (client->phase == PHASE_CLOSING) {
        return;
    }
    socket_client_set_phase(client, PHASE_CLOSING);
    uv_close((uv_handle_t *)&client->pipe, on_handle_closed);
    uv_close((uv_handle_t *)&client->timer, on_handle_closed);
}

bool socket_client_has_input(const struct socket_client *client) {
    uv_os_fd_t fd;
    int count = 0;
    return uv_fileno((const uv_handle_t *)&client->pipe, &fd) == 0 &&
           ioctl(fd, FIONREAD, &count) == 0 && count > 0;
}

static void on_timer(uv_timer_t *timer) {
    struct socket_client *client = timer->data;
    if (client->phase == PHASE_REFUSED || client->unsent != NULL ||
        client->phase == PHASE_ATTACHED) {
        socket_client_close(client); /* had its time to read */
    } else if (client->phase == PHASE_WATCHING) {
        socket_watch_push(client);
    } else if (socket_client_has_input(client)) {
        socket_client_arm(client, client->server->limits.first_request_ms); /* it was us */
    } else {
        socket_client_refuse(client, FAULT_BAD_REQUEST, "no request came in time");
    }
}

void socket_client_arm(struct socket_client *client, uint64_t ms) {
    if (client->phase != PHASE_CLOSING) {
        uv_update_time(client->server->setup.loop); /* timers count from the loop's idea of now */
        uv_timer_start(&client->timer, on_timer, ms, 0);
    }
}

static void on_shut_down(uv_shutdown_t *request, int status) {
    (void)request;
    (void)status; /* the end of the connection follows in any case */
}

/* The end of an attached connection is read, so that it is known who ended it. */
static void write_failed(struct socket_client *client) {
    if (client->phase != PHASE_ATTACHED) {
        socket_client_close(client);
        return;
    }
    client->attach.deaf = true;
    socket_client_arm(client, client->server->limits.stuck_ms);
}

static void on_written(uv_write_t *request, int status) {
    struct socket_client *client = request->data;
    free(client->unsent);
    client->unsent = NULL;
    if (status < 0) {
        write_failed(client);
    } else if (client->phase == PHASE_ATTACHED) {
        uv_timer_stop(&client->timer);
        socket_attach_push(client);
    } else if (client->phase == PHASE_WATCHING) {
        socket_watch_flushed(client);
    } else if (client->phase == PHASE_SERVING) {
        uv_timer_stop(&client->timer);
        socket_client_process(client);
    }
}

void socket_client_send(struct socket_client *client, const char *text, size_t length) {
    uv_buf_t buffer = uv_buf_init((char *)text, (unsigned)length);
    int sent = uv_try_write(stream_of(client), &buffer, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        write_failed(client);
        return;
    }
    size_t taken = sent < 0 ? 0 : (size_t)sent;
    if (taken == length) {
        return;
    }
    client->unsent = memory_text_part(text + taken, length - taken);
    buffer = uv_buf_init(client->unsent, (unsigned)(length - taken));
    client->write.data = client;
    if (uv_write(&client->write, stream_of(client), &buffer, 1, on_written) != 0) {
        free(client->unsent);
        client->unsent = NULL;
        write_failed(client);
        return;
    }
    socket_client_arm(client, client->server->limits.stuck_ms);
}

void socket_client_fault(struct socket_client *client, enum socket_fault fault, const char *text) {
    char line[256];
    snprintf(line, sizeof line, "error %s %s\n", fault_names[fault], text);
    socket_client_count(client, CODE_ERROR);
    socket_client_send(client, line, strlen(line));
}

/* Closing while input is unread would cut the client off in the middle of its writing: the error
 * line goes out, then our side is shut, and what still comes is read and thrown away. */
void socket_client_refuse(struct socket_client *client, enum socket_fault fault, const char *text) {
    if (client->phase == PHASE_CLOSING) {
        return;
    }
    if (client->unsent != NULL) {
        socket_client_close(client); /* does not read anyway */
        return;
    }
    struct socket_server *server = client->server;
    bool linger = server->phases[PHASE_REFUSED] < server->limits.refused;
    socket_client_set_phase(client, PHASE_REFUSED);
    socket_client_fault(client, fault, text);
    if (client->phase == PHASE_CLOSING) {
        return;
    }
    if (!linger || uv_shutdown(&client->shutdown, stream_of(client), on_shut_down) != 0) {
        socket_client_close(client);
        return;
    }
    socket_client_arm(client, server->limits.linger_ms);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)suggested;
    struct socket_client *client = handle->data;
    if (client->phase == PHASE_REFUSED) {
        *buffer = uv_buf_init(discarded, sizeof discarded);
        return;
    }
    *buffer = uv_buf_init(client->input + client->length,
                          (unsigned)(sizeof client->input - client->length));
}

/* Whoever has only ended its sending may still be at work. */
static bool has_hung_up(const struct socket_client *client) {
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&client->pipe, &fd) != 0) {
        return false;
    }
    struct pollfd one = {.fd = fd};
    return poll(&one, 1, 0) > 0 && (one.revents & (POLLHUP | POLLERR)) != 0;
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    (void)buffer;
    struct socket_client *client = stream->data;
    if (count < 0) {
        client->attach.by_peer = has_hung_up(client);
        socket_client_close(client);
    } else if (client->phase == PHASE_WATCHING && count > 0) {
        socket_client_refuse(client, FAULT_BAD_REQUEST, "a connection that watches takes no input");
    } else if (client->phase == PHASE_SERVING || client->phase == PHASE_ATTACHED) {
        client->length += (size_t)count;
        socket_client_process(client);
    }
}

/* Who does not take its reply, or waits for one, is not read: its requests stay in the kernel. */
static void update_reading(struct socket_client *client) {
    if (client->phase == PHASE_CLOSING) {
        return;
    }
    bool wanted = client->phase == PHASE_WATCHING || client->phase == PHASE_REFUSED ||
                  client->phase == PHASE_ATTACHED ||
                  (client->phase == PHASE_SERVING && client->unsent == NULL);
    if (!wanted) {
        uv_read_stop(stream_of(client));
        return;
    }
    int result = uv_read_start(stream_of(client), on_alloc, on_read);
    if (result != 0 && result != UV_EALREADY) {
        socket_client_close(client);
    }
}

/* The length of the first line; SIZE_MAX: not complete yet. One that is known to be over the
 * limit counts as complete. A carriage return may stand before the line end. */
static size_t line_length(const char *input, size_t length, size_t *taken) {
    const char *end = memchr(input, '\n', length);
    size_t line = end == NULL ? length : (size_t)(end - input);
    *taken = end == NULL ? line : line + 1;
    if (line > 0 && input[line - 1] == '\r') {
        line--;
    }
    return end != NULL || line > SOCKET_LINE_MAX ? line : SIZE_MAX;
}

static void take_request(struct socket_client *client, const char *line, size_t length) {
    if (!client->served) {
        client->served = true;
        uv_timer_stop(&client->timer);
    }
    client->active_ms = uv_now(client->server->setup.loop);
    if (length > SOCKET_LINE_MAX) {
        socket_client_refuse(client, FAULT_TOO_LONG, "a request has at most 512 bytes");
    } else if (client->phase == PHASE_ATTACHED) {
        socket_attach_line(client, line, length);
    } else {
        socket_request(client, line, length);
    }
}

static bool takes_lines(const struct socket_client *client) {
    return client->phase == PHASE_ATTACHED ||
           (client->phase == PHASE_SERVING && client->unsent == NULL);
}

void socket_client_process(struct socket_client *client) {
    if (client->processing) {
        return; /* a resignation that was complete at once; the loop below goes on */
    }
    client->processing = true;
    size_t start = 0;
    while (takes_lines(client)) {
        const char *line = client->input + start;
        size_t taken;
        size_t length = line_length(line, client->length - start, &taken);
        if (length == SIZE_MAX) {
            break;
        }
        start += taken;
        take_request(client, line, length);
    }
    client->processing = false;
    client->length -= start;
    memmove(client->input, client->input + start, client->length);
    if (client->phase == PHASE_WATCHING && client->length > 0) {
        socket_client_refuse(client, FAULT_BAD_REQUEST, "a connection that watches takes no input");
    }
    update_reading(client);
}

static pid_t peer_pid(int fd) {
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

struct socket_client *socket_client_create(struct socket_server *server, int fd) {
    struct socket_client *client = memory_zeroed(1, sizeof *client);
    client->server = server;
    client->next = server->clients;
    client->link = &server->clients;
    if (client->next != NULL) {
        client->next->link = &client->next;
    }
    server->clients = client;
    server->open_handles++;
    server->phases[PHASE_SERVING]++;
    client->phase = PHASE_SERVING;
    client->active_ms = uv_now(server->setup.loop);
    client->open_handles = 2;
    client->pipe.data = client;
    client->timer.data = client;
    client->pid = peer_pid(fd);
    client->number = ++server->last_number;
    uv_pipe_init(server->setup.loop, &client->pipe, 0);
    uv_timer_init(server->setup.loop, &client->timer);
    if (uv_pipe_open(&client->pipe, fd) != 0) {
        close(fd);
        socket_client_close(client);
        return client;
    }
    socket_client_arm(client, server->limits.first_request_ms);
    update_reading(client);
    return client;
}
