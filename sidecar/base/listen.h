#ifndef GAVEL_BASE_LISTEN_H
#define GAVEL_BASE_LISTEN_H

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Listening TCP sockets for one configured address, which may stand for two: "localhost" is
 * 127.0.0.1 and ::1, "" is all addresses of both families. Both get the same port. Where the host
 * has no IPv6 the IPv4 socket is enough. No name is ever looked up.
 */
#define LISTEN_SOCKETS_MAX 2

struct listen_socket {
    int fd; /* non-blocking, closed on exec */
    uint16_t port;
    char address[INET6_ADDRSTRLEN];
};

struct listen_set {
    struct listen_socket sockets[LISTEN_SOCKETS_MAX];
    size_t count;
    bool loopback; /* nobody but this host reaches any of them */
};

/* Binds and listens; port 0 takes a free one. `option` is named in errors ("--http"). False:
 * nothing is open and error is set. The sockets are the caller's. */
bool listen_open(struct listen_set *set, const char *option, const char *host, uint16_t port,
                 struct error *error);

void listen_close(struct listen_set *set);

#endif
