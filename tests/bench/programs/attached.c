/*
 * bench_attached SOCKET [watch]: an application that attaches (not with "watch") and watches, both
 * from one process: what is promised to it ends when it does. Says "ok" when it has heard the
 * first state, then each change to leader as "leader BOOTTIME_NS". Of little memory: its end is
 * not waited for.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int64_t boottime_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_BOOTTIME, &time);
    return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int connected(const char *path, const char *verb) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        write(fd, verb, strlen(verb)) != (ssize_t)strlen(verb)) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void say(const char *text) {
    (void)fputs(text, stdout);
    (void)fflush(stdout);
}

static void follow(int fd) {
    FILE *lines = fdopen(fd, "r");
    char line[512];
    bool led = true; /* the first line is no change */
    for (bool first = true; lines != NULL && fgets(line, sizeof line, lines) != NULL;) {
        int64_t heard_ns = boottime_ns();
        bool leads = strncmp(line, "leader ", 7) == 0;
        if (first) {
            say(leads ? "leads\n" : "ok\n");
        } else if (leads && !led) {
            (void)printf("leader %" PRId64 "\n", heard_ns);
            (void)fflush(stdout);
        }
        first = false;
        led = leads;
    }
}

int main(int argc, char **argv) {
    char reply[64];
    if (argc < 2) {
        return 64;
    }
    if (argc == 2) {
        int attached = connected(argv[1], "attach\n");
        if (read(attached, reply, sizeof reply) != 3 || memcmp(reply, "ok\n", 3) != 0) {
            return 1;
        }
    }
    follow(connected(argv[1], "watch\n"));
    return 0;
}
