#include "plan.h"

#include "scenarios.h"

#include <stdio.h>
#include <string.h>

#define START_REAL_NS INT64_C(1796157414879000000) /* the hosts' and the server's REALTIME */

static int64_t pick_ttl(struct rng *rng) {
    static const int ttls_ms[] = {1000, 1000, 1000, 300, 600, 2000, 3000};
    return ttls_ms[rng_index(rng, 7)] * NS_PER_MS;
}

/* From the smallest that is allowed to a third; mostly the default of a fifth. */
static int64_t pick_margin(struct rng *rng, int64_t ttl_ns) {
    int64_t margin_ns = ttl_ns / 5;
    if (rng_chance(rng, 300)) {
        margin_ns = ttl_ns / 10;
    } else if (rng_chance(rng, 200)) {
        margin_ns = rng_between(rng, ttl_ns / 10, ttl_ns / 3);
    }
    return margin_ns < 50 * NS_PER_MS ? 50 * NS_PER_MS : margin_ns;
}

static void note_setting(struct plan *plan, const struct election_config *config) {
    if (config->ttl_ns > plan->ttl_most_ns) {
        plan->ttl_most_ns = config->ttl_ns;
    }
    if (config->margin_ns > plan->margin_most_ns) {
        plan->margin_most_ns = config->margin_ns;
    }
    if (plan->margin_least_ns == 0 || config->margin_ns < plan->margin_least_ns) {
        plan->margin_least_ns = config->margin_ns;
    }
}

static void plan_settings(struct world *world) {
    struct rng *rng = &world->rng;
    struct plan *plan = &world->plan;
    int64_t ttl_ns = pick_ttl(rng);
    int64_t margin_ns = pick_margin(rng, ttl_ns);
    bool mixed = rng_chance(rng, 250);
    bool mixed_margins = rng_chance(rng, 250);
    bool step_down = rng_chance(rng, 100);
    for (int i = 0; i < plan->hosts; i++) {
        struct election_config *config = &world->hosts[i].config;
        config->ttl_ns = mixed ? pick_ttl(rng) : ttl_ns;
        if (plan->favourite == SCENARIO_SHORT_GRANT) {
            config->ttl_ns = i == 1 ? 300 * NS_PER_MS : NS_PER_S;
        }
        config->margin_ns = config->ttl_ns == ttl_ns && !mixed_margins
                                ? margin_ns
                                : pick_margin(rng, config->ttl_ns);
        config->efficiency = plan->efficiency;
        config->step_down = step_down;
        config->drain_none = rng_chance(rng, 150);
        config->drain_ns = rng_chance(rng, 300) ? config->ttl_ns / 2 : 5 * config->ttl_ns;
        config->valid_for_ns = rng_chance(rng, 400)
                                   ? 2 * config->ttl_ns
                                   : rng_between(rng, config->ttl_ns / 20, config->ttl_ns);
        config->poll_ns = plan->kind == KIND_LEASE ? 0 : 250 * NS_PER_MS;
        world->hosts[i].read_every_ns = config->ttl_ns / (rng_chance(rng, 500) ? 3 : 8);
        note_setting(plan, config);
    }
    plan->wait_ns = plan->ttl_most_ns;
    if (rng_chance(rng, 200)) {
        plan->wait_ns += rng_between(rng, 0, plan->ttl_most_ns); /* before a ttl is raised */
    }
    for (int i = 0; i < plan->hosts; i++) {
        world->hosts[i].config.wait_floor_ns = plan->wait_ns;
    }
}

/* Rates: mostly those of real clocks, some near what is promised. */
static void plan_clocks(struct world *world) {
    struct rng *rng = &world->rng;
    int64_t bound_ppm = INT64_MAX;
    for (int i = 0; i < world->plan.hosts; i++) {
        const struct election_config *config = &world->hosts[i].config;
        int64_t ppm = config->margin_ns * 1000000 / config->ttl_ns / 4 * 9 / 10;
        bound_ppm = ppm < bound_ppm ? ppm : bound_ppm;
    }
    int64_t most_ppm = rng_chance(rng, 700) ? 100 : bound_ppm;
    bool extreme = rng_chance(rng, 500);
    for (int i = 0; i <= world->plan.hosts; i++) {
        int64_t ppm = rng_between(rng, -most_ppm, most_ppm);
        if (extreme) {
            ppm = rng_chance(rng, 500) ? most_ppm : -most_ppm;
        }
        if (i == world->plan.hosts) {
            world->store.clock.ppm = ppm;
        } else {
            world->hosts[i].boot.ppm = world->hosts[i].real.ppm = ppm;
            world->hosts[i].boot.value_ns = rng_between(rng, 1, 1000) * NS_PER_S;
            world->hosts[i].real.value_ns =
                START_REAL_NS + rng_between(rng, -5 * NS_PER_S, 5 * NS_PER_S);
        }
    }
    world->store.clock.value_ns = START_REAL_NS;
}

static bool is_off(const struct world *world, enum schedule_part part) {
    return schedule_is_off(world->schedule, part);
}

static void plan_network(struct world *world) {
    struct rng *rng = &world->rng;
    struct network *network = &world->network;
    network->least_ns = rng_between(rng, 50 * NS_PER_US, NS_PER_MS);
    network->most_ns = network->least_ns + rng_between(rng, 0, 4 * NS_PER_MS);
    network->wake_lost = 200;
    if (world->plan.calm) {
        network->wake_lost = 0;
        return;
    }
    if (rng_chance(rng, 400)) {
        return; /* quiet: what happens is what the faults say */
    }
    network->slow = rng_index(rng, 100);
    network->late = rng_index(rng, 40);
    network->lose_request = rng_index(rng, 60);
    network->lose_reply = rng_index(rng, 60);
    network->repeat = rng_index(rng, 40);
}

/* What is left out, once everything has been drawn. */
static void leave_out(struct world *world) {
    struct plan *plan = &world->plan;
    struct network *network = &world->network;
    network->slow = is_off(world, PART_SLOW) ? 0 : network->slow;
    network->late = is_off(world, PART_LATE) ? 0 : network->late;
    network->lose_request = is_off(world, PART_LOST_REQUESTS) ? 0 : network->lose_request;
    network->lose_reply = is_off(world, PART_LOST_REPLIES) ? 0 : network->lose_reply;
    network->repeat = is_off(world, PART_REPEATED) ? 0 : network->repeat;
    network->wake_lost = is_off(world, PART_LOST_WAKES) ? 0 : network->wake_lost;
    int most = is_off(world, PART_THIRD_HOST) ? 2 : is_off(world, PART_FOURTH_HOST) ? 3 : 4;
    plan->hosts = plan->hosts < most ? plan->hosts : most;
    for (int i = 0; i < plan->hosts && is_off(world, PART_RATES); i++) {
        world->hosts[i].boot.ppm = world->hosts[i].real.ppm = world->store.clock.ppm = 0;
    }
}

void plan_make(struct world *world) {
    struct rng *rng = &world->rng;
    struct plan *plan = &world->plan;
    plan->favourite = rng_chance(rng, 700) ? rng_index(rng, SCENARIOS) : -1;
    static const enum store_kind kinds[] = {KIND_LEASE, KIND_LEASE,   KIND_LEASE,   KIND_LEASE,
                                            KIND_LEASE, KIND_SESSION, KIND_SESSION, KIND_KERNEL};
    plan->kind = kinds[rng_index(rng, 8)];
    plan->hosts = 2 + rng_index(rng, HOSTS_MOST - 1);
    if (plan->favourite == SCENARIO_SHORT_GRANT && plan->hosts < 3) {
        plan->hosts = 3;
    }
    plan->efficiency = rng_chance(rng, 100);
    plan->calm = rng_chance(rng, 50);
    plan_settings(world);
    plan_clocks(world);
    plan_network(world);
    plan->chaos_until_ns = plan->ttl_most_ns * rng_between(rng, 12, 30);
    plan->end_ns = plan->chaos_until_ns + 4 * plan->wait_ns + 10 * plan->ttl_most_ns;
    plan->scenario_permille = rng_chance(rng, 800) ? 700 : 100;
    plan->fault_every_ns = plan->ttl_most_ns * rng_between(rng, 1, 5);
    if (plan->calm) {
        plan->fault_every_ns = 0;
    }
    world->servers = 1;
    if (!rng_chance(rng, 50) || plan->kind != KIND_LEASE) {
        world->store.server = (struct server_id){1, 1};
    }
    leave_out(world);
    for (int i = 0; i < plan->hosts; i++) {
        struct host *host = &world->hosts[i];
        host->index = i;
        snprintf(host->identity, sizeof host->identity, "host-%d", i);
        host->config.identity = host->identity;
    }
}
