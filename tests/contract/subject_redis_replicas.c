#include "redis_subject.h"

/* The Redis subject with a replica that has to acknowledge every grant and renewal. */

static struct redis_server *replica;

static void stop(struct contract_space *space) {
    if (replica != NULL) {
        redis_server_stop(replica);
    }
    if (space->data != NULL) {
        redis_server_stop(space->data);
    }
}

static bool is_in_step(const struct redis_server *master) {
    redisReply *reply = redis_server_do(master, "WAIT 1 100");
    bool in_step = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return in_step;
}

static bool start(struct contract_space *space, char *why, size_t why_size) {
    static char port[8]; /* of the command line, also when it is started again */
    const char *const quick[] = {"--repl-diskless-sync-delay", "0", NULL};
    const char *const follow[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct redis_server *master = redis_server_start(quick);
    space->data = master;
    if (master != NULL) {
        snprintf(port, sizeof port, "%u", master->port);
        replica = redis_server_start(follow);
    }
    bool ready = false;
    for (int i = 0; replica != NULL && !ready && i < 200; i++) {
        ready = is_in_step(master);
    }
    if (!ready) {
        snprintf(why, why_size, "redis-server cannot be started with a replica");
        stop(space);
        return false;
    }
    snprintf(space->url, sizeof space->url, "redis://127.0.0.1:%u/3", master->port);
    space->wait_replicas = 1;
    return true;
}

const struct contract_subject contract_subject = REDIS_SUBJECT("redis with a replica");
