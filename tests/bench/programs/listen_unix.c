#include "listen_unix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int listen_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        (void)fprintf(stderr, "%s: too long\n", path);
        exit(1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 128) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

void say_ready(void) {
    (void)printf("ready\n");
    (void)fflush(stdout);
}
