/* The leader stands while its lease runs out. */
#include "scenario.h"

#include "faults.h"
#include "host.h"
#include "past.h"
#include "readers.h"
#include "store_faults.h"

#include <string.h>

/* --- the leader's VM stands while its lease runs out ----------------------------------------- */

static void vm_back_step(struct world *world, const struct message *message) {
    struct host *host = &world->hosts[message->host];
    if (host->paused_until_ns > world->now_ns) {
        scenario_again(world, message, NS_PER_MS);
        return;
    }
    readers_ask(world, host);
    faults_step_real(world, host, -scenario_of_ttl(world, 50, 400));
    readers_ask(world, host);
    scenario_done(world);
}

void scenario_vm_pause(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    int64_t time_ns = scenario_of_ttl(world, 40, 300);
    if (!leader || !faults_vm_pause(world, leader, time_ns)) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, time_ns + scenario_of_ttl(world, 0, 100));
    if (rng_chance(&world->rng, 500)) {
        world_call(world, time_ns + rng_between(&world->rng, 1, 20 * NS_PER_MS), vm_back_step,
                   leader->index, 0);
    } else {
        scenario_done(world);
    }
}

/* --- a leader stands, another leads, then the data of the first comes back ------------------- */

/* A renewal that it sent long ago is carried out only now. */
static void late_renewal(struct world *world, const struct host *host) {
    struct message message = {.type = MESSAGE_REQUEST,
                              .at_ns = world->now_ns + rng_between(&world->rng, 1, 20 * NS_PER_MS),
                              .host = host->index,
                              .flag = true};
    message.body.request = (struct lock_request){.op = OP_RENEW,
                                                 .host = host->index,
                                                 .ttl_ns = host->config.ttl_ns,
                                                 .wait_ns = host->config.wait_floor_ns};
    memcpy(message.body.request.nonce, world->scenario.copy.key.nonce, NONCE_BYTES);
    world_push(world, &message);
}

static void revival_now(struct world *world, const struct message *message) {
    const struct store_copy *copy = &world->scenario.copy;
    struct host *leader = scenario_find_leader(world);
    if (leader && leader->index != message->host) {
        faults_cut(world, leader, scenario_of_ttl(world, 100, 300));
        store_promote(world, copy, copy->at_ns - world->now_ns);
        if (rng_chance(&world->rng, 500)) {
            late_renewal(world, &world->hosts[message->host]);
        }
    }
    scenario_done(world);
}

void scenario_revival(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader || leader->paused_until_ns > world->now_ns) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    int64_t time_ns = leader->config.ttl_ns + scenario_of_ttl(world, 20, 170);
    int64_t back_ns = rng_between(&world->rng, -20 * NS_PER_MS, 100 * NS_PER_MS);
    world->scenario.copy = past_before(world, 0);
    if (rng_chance(&world->rng, 600)) {
        if (!faults_vm_pause(world, leader, time_ns)) {
            scenario_again(world, message, 20 * NS_PER_MS);
            return;
        }
    } else {
        host_pause(world, leader, time_ns, false);
    }
    faults_cut(world, leader, time_ns + back_ns);
    world_call(world, time_ns + back_ns - NS_PER_MS, revival_now, leader->index, 0);
}
