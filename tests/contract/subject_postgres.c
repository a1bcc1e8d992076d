#include "contract.h"

#include "../unit/store/postgres_server.h"
#include "store/postgres/postgres.h"

static bool start(struct contract_space *space, char *why, size_t why_size) {
    struct postgres_server *server = postgres_server_start();
    if (server == NULL) {
        snprintf(why, why_size, "a PostgreSQL server cannot be started");
        return false;
    }
    snprintf(space->url, sizeof space->url, "postgres://app@127.0.0.1:%u/app", server->port);
    space->data = server;
    return true;
}

static void stop(struct contract_space *space) {
    postgres_server_stop(space->data);
}

static void freeze(struct contract_space *space) {
    postgres_server_signal_all(space->data, SIGSTOP);
}

static void thaw(struct contract_space *space) {
    postgres_server_signal_all(space->data, SIGCONT);
}

const struct contract_subject contract_subject = {
    .name = "postgres",
    .ops = &postgres_store_ops,
    .start = start,
    .stop = stop,
    .freeze = freeze,
    .thaw = thaw,
    .wakes = true,
    .frees_on_close = true,
    .tells_since = true,
};
