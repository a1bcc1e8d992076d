#include "config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* What an address covers in one family. */
struct cover {
    bool none, all;
    unsigned char bytes[16];
};

static bool port_parse(const char *text, uint16_t *port) {
    unsigned value = 0;
    size_t length = 0;
    for (; text[length] >= '0' && text[length] <= '9' && length < 6; length++) {
        value = value * 10 + (unsigned)(text[length] - '0');
    }
    if (length == 0 || text[length] != '\0' || value > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

bool address_parse(const char *text, struct listen_address *address) {
    memset(address, 0, sizeof *address);
    if (strcmp(text, "off") == 0) {
        address->off = true;
        return true;
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !port_parse(colon + 1, &address->port)) {
        return false;
    }
    size_t length = (size_t)(colon - text);
    bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    if (brackets) {
        text++;
        length -= 2;
    }
    if (length >= sizeof address->host) {
        return false;
    }
    memcpy(address->host, text, length);
    unsigned char bytes[16];
    if (brackets) {
        return inet_pton(AF_INET6, address->host, bytes) == 1;
    }
    return length == 0 || strcmp(address->host, "localhost") == 0 ||
           inet_pton(AF_INET, address->host, bytes) == 1;
}

const char *address_format(const struct listen_address *address, char text[ADDRESS_TEXT_MAX]) {
    bool v6 = strchr(address->host, ':') != NULL;
    if (address->off) {
        (void)snprintf(text, ADDRESS_TEXT_MAX, "off");
    } else {
        (void)snprintf(text, ADDRESS_TEXT_MAX, v6 ? "[%s]:%u" : "%s:%u", address->host,
                       (unsigned)address->port);
    }
    return text;
}

static bool is_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static struct cover cover_of(const struct listen_address *address, int family) {
    struct cover cover = {.none = false};
    size_t size = family == AF_INET ? 4 : 16;
    if (address->host[0] == '\0' || strcmp(address->host, "::") == 0) {
        cover.all = true; /* "::" may take IPv4 too, that is the system's choice */
    } else if (strcmp(address->host, "localhost") == 0) {
        (void)inet_pton(family, family == AF_INET ? "127.0.0.1" : "::1", cover.bytes);
    } else if (inet_pton(family, address->host, cover.bytes) == 1) {
        cover.all = is_zero(cover.bytes, size);
    } else {
        cover.none = true;
    }
    return cover;
}

bool address_overlaps(const struct listen_address *a, const struct listen_address *b) {
    if (a->off || b->off || a->port == 0 || a->port != b->port) {
        return false;
    }
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < 2; i++) {
        struct cover mine = cover_of(a, families[i]);
        struct cover other = cover_of(b, families[i]);
        if (!mine.none && !other.none &&
            (mine.all || other.all || memcmp(mine.bytes, other.bytes, sizeof mine.bytes) == 0)) {
            return true;
        }
    }
    return false;
}
