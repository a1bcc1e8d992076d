#include "base/httpd.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* What may follow the host: nothing, or a port. */
static bool is_port(const char *text) {
    if (text[0] == '\0') {
        return true;
    }
    size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
    return digits > 0 && digits <= 5 && text[1 + digits] == '\0';
}

bool httpd_host_is_local(const char *host) {
    bool bracket = host[0] == '[';
    const char *name = host + bracket;
    size_t length = strcspn(name, bracket ? "]" : ":");
    if (bracket && name[length] != ']') {
        return false;
    }
    char text[INET6_ADDRSTRLEN];
    if (!is_port(name + length + bracket) || length >= sizeof text) {
        return false;
    }
    memcpy(text, name, length);
    text[length] = '\0';
    if (bracket) {
        struct in6_addr v6;
        return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    }
    struct in_addr v4;
    return strcasecmp(text, "localhost") == 0 ||
           (inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}
