#include "redis_subject.h"

static bool start(struct contract_space *space, char *why, size_t why_size) {
    struct redis_server *server = redis_server_start(NULL);
    if (server == NULL) {
        snprintf(why, why_size, "redis-server cannot be started");
        return false;
    }
    snprintf(space->url, sizeof space->url, "redis://127.0.0.1:%u/3", server->port);
    space->data = server;
    return true;
}

static void stop(struct contract_space *space) {
    redis_server_stop(space->data);
}

const struct contract_subject contract_subject = REDIS_SUBJECT("redis");
