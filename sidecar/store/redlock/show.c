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
    if (!up && status->problem[0] == '\0') {
        snprintf(status->problem, sizeof status->problem, "%s", why);
    }
}
