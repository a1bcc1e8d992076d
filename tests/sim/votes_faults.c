#include "votes.h"

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
    votes_trace(world, "node %zu loses what it knew, or some of it", index);
    world->disturbed_ns[index] = world->now_ns;
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

static void pause_host(struct votes_world *world, struct votes_host *host) {
    if (host->woken_until_ns > world->now_ns) {
        return;
    }
    host->woken_until_ns = world->now_ns + rng_between(&world->rng, 1, 15) * NS_PER_S;
    if (!world->steps_back && rng_chance(&world->rng, 500)) {
        host->vm_paused_ns = world->now_ns;
    }
    votes_trace(world, "host %d stands%s for %.3f s", (int)(host - world->hosts),
                host->vm_paused_ns != 0 ? ", its VM too," : "",
                (double)(host->woken_until_ns - world->now_ns) / 1e9);
}

static void step_clock(struct votes_world *world, struct sim_clock *clock, bool back) {
    int64_t step_ns = rng_between(&world->rng, 3, 40) * NS_PER_S;
    step_ns = back && rng_chance(&world->rng, 500) ? -step_ns : step_ns;
    sim_clock_set(clock, world->now_ns, sim_clock_read(clock, world->now_ns) + step_ns);
    votes_trace(world, "a clock steps by %lld s", (long long)(step_ns / NS_PER_S));
}

static void fault_of_host(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    struct election_event event = {.type = EVENT_RESIGN};
    switch (rng_index(&world->rng, 7)) {
    case 0:
        votes_trace(world, "host %d crashes", index);
        host->up = false; /* whoever asked it has gone with it, or knows no better */
        break;
    case 1:
    case 2:
        if (!host->up) {
            votes_start_host(world, index);
        }
        break;
    case 3:
        pause_host(world, host);
        break;
    case 4:
        step_clock(world, &host->real, world->steps_back);
        break;
    default:
        event.type = rng_chance(&world->rng, 500) ? EVENT_RESIGN : EVENT_DRAIN;
        if (host->up && host->woken_until_ns <= world->now_ns) {
            votes_step(world, index, event);
        }
        break;
    }
}

void votes_heal(struct votes_world *world) {
    for (int i = 0; i < world->host_count; i++) {
        world->hosts[i].cut = 0;
        if (!world->hosts[i].up) {
            votes_start_host(world, i);
        }
    }
    for (size_t i = 0; i < world->node_count; i++) {
        world->down[i] = false;
    }
}

/* Somebody's DEL; where nothing is forgotten otherwise, with a step of the node's clock. */
static void delete_key(struct votes_world *world, size_t node) {
    votes_trace(world, "node %zu: the key is deleted", node);
    world->nodes[node].key.present = false;
    world->disturbed_ns[node] = world->now_ns;
    if (!world->forgets && !world->stepped[node]) {
        world->stepped[node] = true;
        step_clock(world, &world->nodes[node].clock, true);
    }
}

/* One that leads is cut off from all nodes, and they lose it. */
static void delete_all_keys(struct votes_world *world) {
    for (int i = 0; i < world->host_count; i++) {
        if (world->hosts[i].up && world->hosts[i].published.state == STATE_LEADER) {
            votes_trace(world, "host %d is cut off", i);
            world->hosts[i].cut = (1U << world->node_count) - 1;
        }
    }
    for (size_t i = 0; i < world->node_count; i++) {
        delete_key(world, i);
    }
}

void votes_fault(struct votes_world *world) {
    if (rng_chance(&world->rng, 250)) {
        votes_heal(world);
        return;
    }
    size_t node = (size_t)rng_index(&world->rng, (int)world->node_count);
    int host = rng_index(&world->rng, world->host_count);
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
        if (rng_chance(&world->rng, 200)) {
            delete_all_keys(world);
        } else {
            delete_key(world, node);
        }
        break;
    case 2:
        votes_trace(world, "node %zu is %s", node, world->down[node] ? "up again" : "down");
        world->down[node] = !world->down[node];
        break;
    case 3:
    case 4:
        votes_trace(world, "host %d and node %zu: cut off, or no longer", host, node);
        world->hosts[host].cut ^= 1U << node;
        break;
    default:
        fault_of_host(world, host);
        break;
    }
}
