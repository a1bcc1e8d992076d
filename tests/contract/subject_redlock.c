#include "contract.h"

#include "../unit/store/redis_server.h"
#include "store/redlock/redlock.h"

#include <signal.h>
#include <stdio.h>

/* Three servers of their own. Frozen are all of them: the suite asks for a store that is silent. */

#define NODES 3

static struct redis_server *servers[NODES];

static void stop(struct contract_space *space) {
    (void)space;
    for (size_t i = 0; i < NODES; i++) {
        if (servers[i] != NULL) {
            redis_server_stop(servers[i]);
        }
    }
}

static bool start(struct contract_space *space, char *why, size_t why_size) {
    for (size_t i = 0; i < NODES; i++) {
        servers[i] = redis_server_start(NULL);
        if (servers[i] == NULL) {
            snprintf(why, why_size, "three redis-servers cannot be started");
            stop(space);
            return false;
        }
    }
    snprintf(space->url, sizeof space->url,
             "redlock:redis://127.0.0.1:%u/3,redis://127.0.0.1:%u/3,redis://127.0.0.1:%u/3",
             servers[0]->port, servers[1]->port, servers[2]->port);
    return true;
}

static void freeze(struct contract_space *space) {
    (void)space;
    for (size_t i = 0; i < NODES; i++) {
        redis_server_signal(servers[i], SIGSTOP);
    }
}

static void thaw(struct contract_space *space) {
    (void)space;
    for (size_t i = 0; i < NODES; i++) {
        redis_server_signal(servers[i], SIGCONT);
    }
}

const struct contract_subject contract_subject = {.name = "redlock",
                                                  .ops = &redlock_store_ops,
                                                  .start = start,
                                                  .stop = stop,
                                                  .freeze = freeze,
                                                  .thaw = thaw,
                                                  .wakes = true,
                                                  .expires = true};
