#include "base/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512
/* A free port of IPv4 may be taken on IPv6: that many are tried. */
#define PORT_ATTEMPTS 16

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool is_loopback(const union address *address) {
    if (address->any.sa_family == AF_INET) {
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct in6_addr *v6 = &address->v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) ||
           (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
}

static socklen_t address_length(const union address *address) {
    return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

static uint16_t *address_port(union address *address) {
    return address->any.sa_family == AF_INET ? &address->v4.sin_port : &address->v6.sin6_port;
}

/* Why an address family is of no use on this host, as socket() and bind() say it. */
static bool is_family_missing(int cause) {
    return cause == EAFNOSUPPORT || cause == EADDRNOTAVAIL || cause == EPROTONOSUPPORT;
}

static int bind_and_listen(int fd, const union address *address) {
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return errno;
    }
    if (address->any.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) {
        return errno;
    }
    if (bind(fd, &address->any, address_length(address)) != 0 || listen(fd, BACKLOG) != 0) {
        return errno;
    }
    return 0;
}

static int open_one(struct listen_socket *listener, union address address, uint16_t port) {
    *address_port(&address) = htons(port);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    int cause = bind_and_listen(fd, &address);
    socklen_t length = sizeof address;
    if (cause == 0 && getsockname(fd, &address.any, &length) != 0) {
        cause = errno;
    }
    if (cause != 0) {
        close(fd);
        return cause;
    }
    listener->fd = fd;
    listener->port = ntohs(*address_port(&address));
    return 0;
}

static void set_error(struct error *error, const char *option, const char *address, uint16_t port,
                      int cause) {
    const char *fix = "";
    if (cause == EADDRINUSE) {
        fix = "; another process listens there: choose another port, or 0 for a free one";
    } else if (cause == EADDRNOTAVAIL) {
        fix = "; this host has no such address";
    } else if (cause == EACCES) {
        fix = "; ports below 1024 need a privilege: choose a higher one";
    }
    bool v6 = strchr(address, ':') != NULL;
    error_set(error, "%s: cannot listen on %s%s%s:%u: %s%s", option, v6 ? "[" : "", address,
              v6 ? "]" : "", port, strerror(cause), fix);
}

/* Numeric addresses only: a name would have to be looked up, which blocks. */
static bool parse_numeric(const char *host, union address *address) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) {
        return false;
    }
    bool fits = found->ai_family == AF_INET || found->ai_family == AF_INET6;
    if (fits) {
        memcpy(address, found->ai_addr, found->ai_addrlen);
    }
    freeaddrinfo(found);
    return fits;
}

static size_t resolve(const char *host, union address addresses[LISTEN_SOCKETS_MAX]) {
    addresses[0] = (union address){.v4 = {.sin_family = AF_INET}};
    addresses[1] = (union address){.v6 = {.sin6_family = AF_INET6}};
    if (host[0] == '\0') {
        addresses[0].v4.sin_addr.s_addr = htonl(INADDR_ANY);
        addresses[1].v6.sin6_addr = in6addr_any;
        return 2;
    }
    if (strcmp(host, "localhost") == 0) {
        addresses[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        addresses[1].v6.sin6_addr = in6addr_loopback;
        return 2;
    }
    return parse_numeric(host, &addresses[0]) ? 1 : 0;
}

/* Opens all addresses on one port. 0, or the cause with *failed as the one that it is about. */
static int open_all(struct listen_set *set, const union address *addresses, size_t count,
                    uint16_t port, size_t *failed) {
    set->count = 0;
    for (size_t i = 0; i < count; i++) {
        int cause = open_one(&set->sockets[set->count], addresses[i], port);
        if (cause != 0 && i > 0 && is_family_missing(cause)) {
            continue; /* IPv4 alone */
        }
        if (cause != 0) {
            listen_close(set);
            *failed = i;
            return cause;
        }
        struct listen_socket *listener = &set->sockets[set->count++];
        const void *raw = addresses[i].any.sa_family == AF_INET
                              ? (const void *)&addresses[i].v4.sin_addr
                              : (const void *)&addresses[i].v6.sin6_addr;
        inet_ntop(addresses[i].any.sa_family, raw, listener->address, sizeof listener->address);
        port = listener->port;
    }
    return 0;
}

bool listen_open(struct listen_set *set, const char *option, const char *host, uint16_t port,
                 struct error *error) {
    union address addresses[LISTEN_SOCKETS_MAX];
    size_t count = resolve(host, addresses);
    if (count == 0) {
        error_set(error,
                  "%s: \"%s\" is not an address to listen on: use an IP address, localhost, or "
                  "nothing for all addresses (\":4040\")",
                  option, host);
        return false;
    }
    size_t failed = 0;
    int cause = 0;
    for (int attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
        cause = open_all(set, addresses, count, port, &failed);
        if (cause != EADDRINUSE || port != 0) {
            break;
        }
    }
    if (cause != 0) {
        char text[INET6_ADDRSTRLEN] = "";
        const union address *address = &addresses[failed];
        getnameinfo(&address->any, address_length(address), text, sizeof text, NULL, 0,
                    NI_NUMERICHOST);
        set_error(error, option, text, port, cause);
        return false;
    }
    set->loopback = true;
    for (size_t i = 0; i < count; i++) {
        set->loopback = set->loopback && is_loopback(&addresses[i]);
    }
    return true;
}

void listen_close(struct listen_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        close(set->sockets[i].fd);
    }
    set->count = 0;
}
