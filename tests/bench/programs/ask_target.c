#include "ask.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

int64_t now_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static int connect_port(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

int target_connect(const struct target *target) {
    int fd =
        target->address[0] == '/' ? connect_unix(target->address) : connect_port(target->address);
    if (fd < 0) {
        perror(target->address);
        exit(1);
    }
    return fd;
}

size_t target_answer_end(const struct target *target, const char *buffer, size_t length) {
    if (!target->http) {
        const char *newline = memchr(buffer, '\n', length);
        return newline == NULL ? 0 : (size_t)(newline - buffer) + 1;
    }
    const char *end = strstr(buffer, "\r\n\r\n");
    if (end == NULL) {
        return 0;
    }
    const char *size = strcasestr(buffer, "\r\ncontent-length:");
    size_t whole = (size_t)(end - buffer) + 4;
    whole += size == NULL || size > end ? 0 : strtoul(size + 17, NULL, 10);
    return length < whole ? 0 : whole;
}
