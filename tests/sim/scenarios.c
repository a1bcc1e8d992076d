#include "scenarios.h"

#include "faults.h"
#include "readers.h"
#include "scenario.h"

#include <string.h>

#define TRIES_MOST 400

int64_t scenario_of_ttl(struct world *world, int64_t low_percent, int64_t high_percent) {
    int64_t ttl_ns = world->plan.ttl_most_ns;
    return rng_between(&world->rng, ttl_ns * low_percent / 100, ttl_ns * high_percent / 100);
}

void scenario_done(struct world *world) {
    world->scenario.busy = false;
}

/* The step is not possible yet: once more, a little later. */
void scenario_again(struct world *world, const struct message *message, int64_t delay_ns) {
    if (++world->scenario.tries > TRIES_MOST) {
        scenario_done(world);
        return;
    }
    world_call(world, delay_ns, message->call, message->host, message->number);
}

/* The leader, noted in the scenario. */
struct host *scenario_find_leader(struct world *world) {
    int leader = readers_leader(world);
    if (leader < 0) {
        return NULL;
    }
    world->scenario.leader = leader;
    return &world->hosts[leader];
}

struct host *scenario_pick_other(struct world *world) {
    int hosts = world->plan.hosts;
    int other = (world->scenario.leader + 1 + rng_index(&world->rng, hosts - 1)) % hosts;
    world->scenario.other = other;
    return &world->hosts[other];
}

void scenario_crash_others(struct world *world, int64_t back_after_ns) {
    for (int i = 0; i < world->plan.hosts; i++) {
        if (i != world->scenario.leader) {
            faults_crash(world, &world->hosts[i],
                         back_after_ns + rng_between(&world->rng, 0, 5 * NS_PER_MS));
        }
    }
}

void scenarios_start(struct world *world, int kind) {
    static void (*const starts[SCENARIOS])(struct world *, const struct message *) = {
        scenario_lose,         scenario_fall_back,    scenario_retry,    scenario_unled,
        scenario_late_release, scenario_late_acquire, scenario_vm_pause, scenario_silence,
        scenario_slow_grant,   scenario_short_grant,  scenario_revival,
    };
    if (world->scenario.busy) {
        return;
    }
    memset(&world->scenario, 0, sizeof world->scenario);
    world->scenario.busy = true;
    world_count(world, (enum stat)(STAT_SCENARIO_LOSE + kind));
    world_trace(world, "scenario %d", kind);
    world_call(world, 0, starts[kind], 0, 0);
}
