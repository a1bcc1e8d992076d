#include "store/postgres/route.h"

#include "base/memory.h"
#include "store/postgres/sql.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On the heap: a look-up may outlast the round that asked for it. One at a time, so that a name
 * server that hangs cannot take all threads. */
struct pg_lookup {
    uv_getaddrinfo_t request;
    struct pg_route *route;
    struct store_lives *lives;
    size_t host;
    bool wanted;
};

void pg_route_init(struct pg_route *route, uv_loop_t *loop, struct store_lives *lives,
                   const char *url, const char *identity) {
    memset(route, 0, sizeof *route);
    route->loop = loop;
    route->lives = lives;
    route->url = url;
    route->identity = identity;
}

bool pg_route_begin(struct pg_route *route, char text[PG_TEXT]) {
    route->tried = 0;
    route->address_count = 0;
    route->next_address = 0;
    route->why[0] = '\0';
    if (!pg_target_read(route->url, &route->target, text)) {
        return false;
    }
    route->worked %= route->target.count;
    return true;
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *list) {
    struct pg_lookup *lookup = request->data;
    struct pg_route *route = lookup->route;
    bool wanted = lookup->wanted && !lookup->lives->closing;
    route->lookup = NULL;
    if (wanted) {
        for (const struct addrinfo *at = list;
             at != NULL && route->address_count < PG_ADDRESSES_MAX; at = at->ai_next) {
            char *text = route->addresses[route->address_count];
            if (uv_ip_name(at->ai_addr, text, sizeof route->addresses[0]) == 0) {
                route->address_count++;
            }
        }
        if (status != 0 || route->address_count == 0) {
            (void)snprintf(route->why, sizeof route->why, "looking up %.60s: %s",
                           route->target.hosts[route->host].host,
                           status != 0 ? uv_strerror(status) : "the name has no address");
        }
    }
    uv_freeaddrinfo(list);
    struct store_lives *lives = lookup->lives;
    free(lookup);
    if (wanted) {
        route->found(route->context);
    }
    store_lives_end(lives);
}

static bool look_up(struct pg_route *route, const char *name) {
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    if (route->lookup != NULL) {
        if (route->lookup->host != route->host) {
            (void)snprintf(route->why, sizeof route->why, "another look-up has no end");
            return false;
        }
        route->lookup->wanted = true;
        return true;
    }
    struct pg_lookup *lookup = memory_zeroed(1, sizeof *lookup);
    lookup->request.data = lookup;
    lookup->route = route;
    lookup->lives = route->lives;
    lookup->host = route->host;
    lookup->wanted = true;
    int status = uv_getaddrinfo(route->loop, &lookup->request, on_found, name, NULL, &hints);
    if (status != 0) {
        (void)snprintf(route->why, sizeof route->why, "looking up %.60s: %s", name,
                       uv_strerror(status));
        free(lookup);
        return false;
    }
    route->lookup = lookup;
    store_lives_begin(route->lives);
    return true;
}

static bool is_address(const char *text) {
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static enum pg_route_next use(struct pg_route *route, const char *address) {
    (void)snprintf(route->address, sizeof route->address, "%s", address);
    return PG_ROUTE_READY;
}

enum pg_route_next pg_route_next(struct pg_route *route) {
    for (;;) {
        if (route->next_address < route->address_count) {
            return use(route, route->addresses[route->next_address++]);
        }
        if (route->tried == route->target.count) {
            return PG_ROUTE_END;
        }
        route->host = (route->worked + route->tried++) % route->target.count;
        route->address_count = 0;
        route->next_address = 0;
        const char *host = route->target.hosts[route->host].host;
        const char *address = route->target.hosts[route->host].address;
        if (host[0] == '/' || host[0] == '@') {
            return use(route, "");
        }
        if (address[0] != '\0' || is_address(host)) {
            return use(route, address[0] != '\0' ? address : host);
        }
        if (look_up(route, host)) {
            return PG_ROUTE_LATER;
        }
    }
}

bool pg_route_open(const struct pg_route *route, struct pg_link *link, enum pg_failure *failure,
                   char text[PG_TEXT]) {
    /* What stands before the URL (dbname) is a default, what stands after it wins. */
    const char *names[16];
    const char *values[16];
    size_t count = 0;
    char name[64];
    (void)snprintf(name, sizeof name, PG_APPLICATION "%.50s", route->identity);
    names[count] = "fallback_application_name";
    values[count++] = name;
    names[count] = "gssencmode"; /* it may talk to a key server, on the loop */
    values[count++] = "disable";
    if (route->target.count > 1) {
        names[count] = "target_session_attrs";
        values[count++] = "read-write";
    }
    names[count] = "dbname";
    values[count++] = route->url;
    names[count] = "host";
    values[count++] = route->target.hosts[route->host].host;
    names[count] = "hostaddr";
    values[count++] = route->address;
    names[count] = "port";
    values[count++] = route->target.hosts[route->host].port;
    names[count] = NULL;
    values[count] = NULL;
    return pg_link_open(link, names, values, failure, text);
}

void pg_route_text(const struct pg_route *route, char *text, size_t size) {
    const char *host = route->target.hosts[route->host].host;
    (void)snprintf(text, size, "%.60s:%.7s", route->address[0] != '\0' ? route->address : host,
                   route->target.hosts[route->host].port);
}

void pg_route_forget(struct pg_route *route) {
    if (route->lookup != NULL) {
        route->lookup->wanted = false;
        if (route->lives->closing) {
            (void)uv_cancel((uv_req_t *)&route->lookup->request);
        }
    }
}
