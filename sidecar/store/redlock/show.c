#include "store/redlock/inside.h"

#include <stdio.h>
#include <string.h>

/* The node's name, unless its own words begin with it. */
static const char *name_for(const char *name, const char *problem) {
    size_t host = strcspn(name, "/");
    return strncmp(name, problem, host) == 0 ? "" : name;
}

/* Nodes in trouble, by name, as far as there is room. */
static void show_problem(const struct redlock_store *store) {
    struct store_status *status = store->setup.status;
    size_t troubled = 0;
    size_t length = 0;
    for (size_t i = 0; i < store->list.count; i++) {
        troubled += store->nodes[i].status.problem[0] != '\0' ? 1 : 0;
    }
    status->problem[0] = '\0';
    if (troubled == 0) {
        return;
    }
    size_t share = (sizeof status->problem - 40) / (troubled < 3 ? troubled : 3);
    length = (size_t)snprintf(status->problem, sizeof status->problem, "%zu of %zu nodes", troubled,
                              store->list.count);
    for (size_t i = 0; i < store->list.count && length + share < sizeof status->problem; i++) {
        const char *problem = store->nodes[i].status.problem;
        if (problem[0] == '\0') {
            continue;
        }
        const char *name = name_for(store->list.names[i], problem);
        size_t room = share < sizeof status->problem - length ? share : 0;
        int added = snprintf(status->problem + length, room, "; %.60s%s%.120s", name,
                             *name != '\0' ? ": " : "", problem);
        length += added > 0 && (size_t)added < room ? (size_t)added : room - 1;
    }
}

/* The server that a node was last seen to be: "run_id:replication_id"; empty: unknown. */
static const char *server_of(const struct redlock_store *store, size_t node) {
    return store->elections[0].round.nodes[node].proof.vouch.server;
}

/* The first node that is the same server under another name; the count: none is. */
static size_t same_server(const struct redlock_store *store, size_t node) {
    const char *server = server_of(store, node);
    size_t run = strcspn(server, ":");
    for (size_t i = 0; i < node && run > 0; i++) {
        const char *other = server_of(store, i);
        if (strcspn(other, ":") == run && memcmp(other, server, run) == 0) {
            return i;
        }
    }
    return store->list.count;
}

static void show_nodes(const struct redlock_store *store) {
    struct store_status *status = store->setup.status;
    size_t length = 0;
    size_t share = sizeof status->nodes / store->list.count;
    for (size_t i = 0; i < store->list.count; i++) {
        const struct store_status *node = &store->nodes[i].status;
        size_t same = same_server(store, i);
        int added = snprintf(
            status->nodes + length, share, "%.90s: %s%s%s%.60s", store->list.names[i],
            node->up ? "up" : "down", node->version[0] != '\0' ? ", " : "", node->version,
            same < store->list.count ? "; one server with another node, they are one vote" : "");
        length += added > 0 && (size_t)added < share ? (size_t)added : share - 1;
        status->nodes[length] = i + 1 < store->list.count ? '\n' : '\0';
        length++;
    }
}

void redlock_show(struct redlock_store *store, bool up, const char *why) {
    struct store_status *status = store->setup.status;
    uint64_t reconnects = 0;
    uint64_t clock_steps = 0;
    status->up = up;
    status->version[0] = '\0';
    for (size_t i = 0; i < store->list.count; i++) {
        const struct store_status *node = &store->nodes[i].status;
        reconnects += node->reconnects;
        clock_steps += node->clock_steps;
        if (status->version[0] == '\0') {
            memcpy(status->version, node->version, sizeof status->version);
        }
    }
    status->reconnects = reconnects;
    status->clock_steps = clock_steps;
    show_problem(store);
    show_nodes(store);
    if (!up && status->problem[0] == '\0') {
        snprintf(status->problem, sizeof status->problem, "%s", why);
    }
}
