#include "cli/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)
#define RETRY_MS 10 /* the listener's queue is full: nothing says when it no longer is */

int64_t client_now_ns(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

const char *client_result_text(enum client_result result) {
    switch (result) {
    case CLIENT_OK:
        break;
    case CLIENT_TIMEOUT:
        return "no answer in time";
    case CLIENT_ABSENT:
        return strerror(errno);
    case CLIENT_CLOSED:
        return "the connection ended without an answer";
    case CLIENT_JUNK:
        return "the answer is not one of a sidecar";
    }
    return "answered";
}

/* Milliseconds for poll(2), rounded up so that it does not spin at the end. */
static int left_ms(int64_t deadline_ns) {
    int64_t left_ns = deadline_ns - client_now_ns();
    if (left_ns <= 0) {
        return 0;
    }
    int64_t ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms < 1000 ? (int)ms : 1000;
}

static bool wait_for(int fd, short events, int64_t deadline_ns) {
    while (client_now_ns() < deadline_ns) {
        struct pollfd wanted = {.fd = fd, .events = events};
        if (poll(&wanted, 1, left_ms(deadline_ns)) > 0) {
            return true;
        }
    }
    return false;
}

enum client_result client_connect(struct client *client, const char *path, int64_t deadline_ns) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    client->length = 0;
    client->taken = 0;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return CLIENT_ABSENT;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) {
        return CLIENT_ABSENT;
    }
    while (connect(client->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int why = errno;
        if ((why != EAGAIN && why != EINTR) || client_now_ns() >= deadline_ns) {
            client_close(client);
            errno = why;
            return why == EAGAIN || why == EINTR ? CLIENT_TIMEOUT : CLIENT_ABSENT;
        }
        (void)poll(NULL, 0, RETRY_MS);
    }
    return CLIENT_OK;
}

enum client_result client_send(struct client *client, const char *verb, const char *name,
                               int64_t deadline_ns) {
    char request[256];
    int length =
        snprintf(request, sizeof request, "%s%s%s\n", verb, name[0] != '\0' ? " " : "", name);
    if (length < 0 || (size_t)length >= sizeof request) {
        return CLIENT_JUNK;
    }
    for (size_t sent = 0; sent < (size_t)length;) {
        ssize_t part = send(client->fd, request + sent, (size_t)length - sent, MSG_NOSIGNAL);
        if (part >= 0) {
            sent += (size_t)part;
        } else if (errno == EAGAIN) {
            if (!wait_for(client->fd, POLLOUT, deadline_ns)) {
                return CLIENT_TIMEOUT;
            }
        } else if (errno != EINTR) {
            /* It may have said why before it closed. */
            return errno == EPIPE ? CLIENT_OK : CLIENT_CLOSED;
        }
    }
    return CLIENT_OK;
}

/* Ends the first line in what was read; NULL: there is none yet. */
static char *line_end(struct client *client) {
    return memchr(client->bytes, '\n', client->length);
}

enum client_result client_read(struct client *client, int64_t deadline_ns, const char **line) {
    client->length -= client->taken;
    memmove(client->bytes, client->bytes + client->taken, client->length);
    client->taken = 0;
    char *end;
    while ((end = line_end(client)) == NULL) {
        if (client->length == sizeof client->bytes) {
            return CLIENT_JUNK;
        }
        ssize_t got = recv(client->fd, client->bytes + client->length,
                           sizeof client->bytes - client->length, 0);
        if (got > 0) {
            client->length += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return CLIENT_CLOSED;
        } else if (!wait_for(client->fd, POLLIN, deadline_ns)) {
            return CLIENT_TIMEOUT;
        }
    }
    *end = '\0';
    *line = client->bytes;
    client->taken = (size_t)(end - client->bytes) + 1;
    return strlen(client->bytes) + 1 == client->taken ? CLIENT_OK : CLIENT_JUNK;
}

void client_close(struct client *client) {
    (void)close(client->fd);
    client->fd = -1;
}

enum client_result client_ask(const char *path, const char *verb, const char *name,
                              int64_t deadline_ns, char *line) {
    struct client client;
    const char *reply;
    enum client_result result = client_connect(&client, path, deadline_ns);
    if (result != CLIENT_OK) {
        return result;
    }
    result = client_send(&client, verb, name, deadline_ns);
    if (result == CLIENT_OK) {
        result = client_read(&client, deadline_ns, &reply);
    }
    if (result == CLIENT_OK) {
        memcpy(line, reply, strlen(reply) + 1);
    }
    client_close(&client);
    return result;
}
