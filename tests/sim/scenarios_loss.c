/* The lock is lost, and what happens to whoever takes it. */
#include "scenario.h"

#include "faults.h"
#include "host.h"
#include "past.h"
#include "store_faults.h"

/* --- the leader is cut off, then the key is lost -------------------------------------------- */

static void lose_now(struct world *world, const struct message *message) {
    (void)message;
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    scenario_done(world);
}

void scenario_lose(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, scenario_of_ttl(world, 100, 300));
    world_call(world,
               rng_chance(&world->rng, 700) ? scenario_of_ttl(world, 0, 10)
                                            : scenario_of_ttl(world, 0, 80),
               lose_now, 0, 0);
}

/* --- a clean handover, then the data of that moment comes back ------------------------------- */

static bool fall_back_by(struct world *world, int kind) {
    struct store_copy *copy = &world->scenario.copy;
    bool behind = rng_chance(&world->rng, 500);
    switch (kind) {
    case 0:
        store_promote(world, copy, behind ? -scenario_of_ttl(world, 10, 95) : 0);
        return true;
    case 1:
        store_restore(world, copy);
        return true;
    case 2:
        store_promote_back(world, copy);
        return true;
    default:
        return store_roll_back(world, copy, rng_chance(&world->rng, 500));
    }
}

static void fall_back_now(struct world *world, const struct message *message) {
    (void)message;
    fall_back_by(world, world->scenario.kind);
    scenario_done(world);
}

static void fall_back_led(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    struct scenario *scenario = &world->scenario;
    if (!leader || !past_clean(world, &scenario->copy) ||
        scenario->copy.record.token >= leader->published.token) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    scenario->kind = rng_index(&world->rng, 4);
    faults_cut(world, leader, scenario_of_ttl(world, 100, 300));
    if (scenario->kind < 3) {
        scenario_crash_others(world,
                              scenario_of_ttl(world, 2, 20)); /* who comes back has seen no token */
    }
    world_call(world, rng_between(&world->rng, 0, 5 * NS_PER_MS), fall_back_now, 0, 0);
}

void scenario_fall_back(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    if (rng_chance(&world->rng, 700)) {
        faults_leave(world, leader, rng_chance(&world->rng, 300));
    }
    world_call(world, scenario_of_ttl(world, 20, 300), fall_back_led, 0, 0);
}

/* --- the lock is lost, and the replies to whoever takes it are too --------------------------- */

static void retry_lose(struct world *world, const struct message *message) {
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    if (message->number > 0) {
        world_call(world, scenario_of_ttl(world, 5, 120), retry_lose, 0, message->number - 1);
    } else {
        scenario_done(world);
    }
}

void scenario_retry(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, scenario_of_ttl(world, 100, 300));
    for (int i = 0; i < world->plan.hosts; i++) {
        if (i != leader->index && rng_chance(&world->rng, 800)) {
            faults_deafen(world, &world->hosts[i], scenario_of_ttl(world, 10, 80));
        }
    }
    world_call(world, scenario_of_ttl(world, 0, 10), retry_lose, 0,
               rng_chance(&world->rng, 300) ? 1 : 0);
}

/* --- a grant that never led is given back ---------------------------------------------------- */

static void unled_leave(struct world *world, const struct message *message) {
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (host_is_awake(world, host) && host->published.state == STATE_PENDING) {
            faults_leave(world, host, rng_chance(&world->rng, 500));
            scenario_done(world);
            return;
        }
    }
    scenario_again(world, message, 5 * NS_PER_MS);
}

void scenario_unled(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, scenario_of_ttl(world, 100, 300));
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    world_call(world, scenario_of_ttl(world, 0, 30), unled_leave, 0, 0);
}

/* --- a grant of a short ttl lies between the long lease and whoever comes next --------------- */

static void short_grant_ends(struct world *world, const struct message *message) {
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (host->published.state == STATE_PENDING &&
            host->config.ttl_ns < world->plan.ttl_most_ns) {
            if (message->number == 0 && rng_chance(&world->rng, 300)) {
                store_delete_record(world); /* its next renewal writes it anew */
                world_call(world, host->config.ttl_ns / 2, message->call, 0, 1);
                return;
            }
            if (rng_chance(&world->rng, 700)) {
                faults_crash(world, host, 2 * world->plan.ttl_most_ns);
            } else {
                faults_leave(world, host, true);
            }
            scenario_done(world);
            return;
        }
    }
    scenario_again(world, message, 2 * NS_PER_MS);
}

void scenario_short_grant(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    int64_t ttl_ns = world->plan.ttl_most_ns;
    if (!leader || leader->config.ttl_ns < ttl_ns) {
        if (leader && world->scenario.tries % 50 == 0) {
            faults_leave(world, leader, false);
        }
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, scenario_of_ttl(world, 100, 200));
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (host != leader && host->config.ttl_ns == ttl_ns) {
            faults_deafen(world, host, scenario_of_ttl(world, 30, 80));
        }
    }
    faults_lose_key(world, rng_index(&world->rng, 2));
    world_call(world, NS_PER_MS, short_grant_ends, 0, 0);
}
