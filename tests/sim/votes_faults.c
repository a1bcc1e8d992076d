#include "votes.h"

#include <stdio.h>

static void forget(struct votes_world *world, struct model_store *node, bool restart) {
    node->key.present = false;
    node->record.present = false;
    if (restart) {
        node->server.run = ++world->runs;
        node->server.repl = world->runs;
    }
}

/* It comes back with what it had on disk. */
static void go_back(struct votes_world *world, size_t index) {
    struct model_store *node = &world->nodes[index];
    node->key = world->saved[index].key;
    node->record = world->saved[index].record;
    node->server.run = ++world->runs;
    node->server.repl = world->runs;
}

static void fault_of_memory(struct votes_world *world, size_t index) {
    struct model_store *node = &world->nodes[index];
    switch (rng_index(&world->rng, 5)) {
    case 0:
    case 1:
        forget(world, node, true);
        break;
    case 2:
        forget(world, node, false);
        break;
    case 3:
        go_back(world, index);
        break;
    default:
        world->saved[index] = *node;
        break;
    }
}

static void fault_of_host(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    struct election_event event = {.type = EVENT_RESIGN};
    switch (rng_index(&world->rng, 5)) {
    case 0:
        host->up = false; /* whoever asked it has gone with it, or knows no better */
        break;
    case 1:
    case 2:
        if (!host->up) {
            votes_start_host(world, index);
        }
        break;
    case 3:
        host->woken_until_ns = world->now_ns + rng_between(&world->rng, 1, 15) * NS_PER_S;
        break;
    default:
        if (host->up && host->woken_until_ns <= world->now_ns) {
            votes_step(world, index, event);
        }
        break;
    }
}

static void heal(struct votes_world *world) {
    for (int i = 0; i < VOTES_HOSTS; i++) {
        world->hosts[i].cut = 0;
        if (!world->hosts[i].up) {
            votes_start_host(world, i);
        }
    }
    for (size_t i = 0; i < world->node_count; i++) {
        world->down[i] = false;
    }
}

void votes_fault(struct votes_world *world) {
    if (rng_chance(&world->rng, 250)) {
        heal(world);
        return;
    }
    size_t node = (size_t)rng_index(&world->rng, (int)world->node_count);
    int host = rng_index(&world->rng, VOTES_HOSTS);
    switch (rng_index(&world->rng, 7)) {
    case 0:
        if (world->forgets) {
            fault_of_memory(world, node);
        } else { /* a new process, that has seen no token and reaches all nodes but one */
            votes_start_host(world, host);
            world->hosts[host].cut = 1U << node;
        }
        break;
    case 1:
        world->nodes[node].key.present = false; /* somebody's DEL */
        break;
    case 2:
        world->down[node] = !world->down[node];
        break;
    case 3:
    case 4:
        world->hosts[host].cut ^= 1U << node;
        break;
    default:
        fault_of_host(world, host);
        break;
    }
    if (world->trace) {
        printf("%10.3f fault\n", (double)world->now_ns / 1e9);
    }
}
