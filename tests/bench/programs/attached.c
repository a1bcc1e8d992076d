/* bench_attached SOCKET: an application that attaches, says "ok" when it is, and does no more. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char reply[64];
    if (argc != 2) {
        return 64;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        write(fd, "attach\n", 7) != 7) {
        perror(argv[1]);
        return 1;
    }
    ssize_t got = read(fd, reply, sizeof reply);
    if (got <= 0 || write(1, reply, (size_t)got) != got) {
        return 1;
    }
    for (;;) {
        (void)pause();
    }
}
