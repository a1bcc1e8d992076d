/* What a schedule starts with. */
#include "votes.h"

void votes_plan_nodes(struct votes_world *world) {
    world->node_count = 3 + (size_t)(rng_chance(&world->rng, 300) ? 2 : 0) + (world->grows ? 1 : 0);
    world->node_count = world->node_count > VOTES_NODES ? VOTES_NODES : world->node_count;
    for (size_t i = 0; i < world->node_count; i++) {
        struct model_store *node = &world->nodes[i];
        int64_t ahead_ns = rng_between(&world->rng, 0, 20) * NS_PER_MS;
        node->clock = (struct sim_clock){world->now_ns, world->now_ns + ahead_ns,
                                         rng_between(&world->rng, -100, 100)};
        node->server = (struct server_id){++world->runs, world->runs};
        if (!world->forgets) { /* far above the clocks, and already different */
            node->record = (struct lock_record){.present = true,
                                                .complete = true,
                                                .clean = true,
                                                .token = 10000000000 +
                                                         1000 * (uint64_t)rng_index(&world->rng, 9),
                                                .end_us = 1,
                                                .ttl_ns = VOTES_TTL_NS,
                                                .server = node->server};
        }
        world->saved[i] = *node;
    }
}

/* Different ttls, margins and rates in some schedules: as far apart as is promised. */
void votes_plan_hosts(struct votes_world *world) {
    static const int64_t ttls_ns[] = {VOTES_TTL_NS, VOTES_TTL_NS / 2, VOTES_TTL_NS / 4};
    bool mixed = rng_chance(&world->rng, 300);
    bool wide = rng_chance(&world->rng, 300);
    for (int i = 0; i < VOTES_HOSTS; i++) {
        struct votes_host *host = &world->hosts[i];
        int64_t most_ppm = wide ? 40000 : 100;
        host->ttl_ns = mixed ? ttls_ns[rng_index(&world->rng, 3)] : VOTES_TTL_NS;
        host->margin_ns = host->ttl_ns / 5;
        int64_t ppm = rng_between(&world->rng, -most_ppm, most_ppm);
        if (schedule_is_off(world->schedule, PART_RATES)) {
            ppm = 0;
        }
        host->boot =
            (struct sim_clock){world->now_ns, rng_between(&world->rng, 1, 100000) * NS_PER_S, ppm};
        host->real = (struct sim_clock){world->now_ns, 1700000000 * NS_PER_S, ppm};
    }
    world->host_count = schedule_is_off(world->schedule, PART_THIRD_HOST) ? 2 : VOTES_HOSTS;
}
