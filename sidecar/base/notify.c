#include "base/notify.h"

#include "election/instant.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int64_t number_of(const char *name) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return 0;
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno != 0 || *end != '\0' || number < 0 ? 0 : (int64_t)number;
}

void notify_init(struct notify *notify) {
    notify->fd = -1;
    notify->watchdog_ns = 0;
    notify->watchdog_due_ns = 0;
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || path[1] == '\0') {
        return;
    }
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* an abstract name */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return;
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (connect(fd, (const struct sockaddr *)&address, size) != 0) {
        close(fd);
        return;
    }
    notify->fd = fd;
    int64_t pid = number_of("WATCHDOG_PID");
    if (pid == 0 || pid == (int64_t)getpid()) {
        notify->watchdog_ns = number_of("WATCHDOG_USEC") % (INT64_MAX / NS_PER_US) * NS_PER_US / 2;
    }
}

void notify_send(struct notify *notify, const char *message) {
    if (notify->fd >= 0) {
        ssize_t sent = send(notify->fd, message, strlen(message), MSG_NOSIGNAL);
        (void)sent; /* the manager has gone or is slow: nothing to be done */
    }
}

void notify_finish(struct notify *notify) {
    if (notify->fd >= 0) {
        close(notify->fd);
        notify->fd = -1;
    }
}
