/*
 * bench_bare PATH REPLY: the least that a server can do. One client at a time on a Unix socket;
 * each read is answered by REPLY and a newline, blocking, with nothing in between.
 */
#include "listen_unix.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void serve(int client, const char *reply, size_t length) {
    char question[512];
    while (read(client, question, sizeof question) > 0) {
        if (write(client, reply, length) != (ssize_t)length) {
            return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 64;
    }
    char reply[512];
    size_t length = strlen(argv[2]);
    if (length + 1 > sizeof reply) {
        return 64;
    }
    memcpy(reply, argv[2], length);
    reply[length] = '\n';
    int server = listen_unix(argv[1]);
    say_ready();
    for (;;) {
        int client = accept(server, NULL, NULL);
        if (client >= 0) {
            serve(client, reply, length + 1);
            (void)close(client);
        }
    }
}
