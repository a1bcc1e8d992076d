/* Requests that come late, and clocks that nobody looked at. */
#include "scenario.h"

#include "faults.h"

/* --- a release arrives once more, when the same process leads again -------------------------- */

static void late_release_cut(struct world *world, const struct message *message) {
    faults_cut(world, &world->hosts[message->host], scenario_of_ttl(world, 50, 200));
    scenario_done(world);
}

void scenario_late_release(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    int64_t away_ns = world->plan.ttl_most_ns * 2 + scenario_of_ttl(world, 0, 100);
    leader->repeat_release_ns = away_ns;
    scenario_crash_others(world, away_ns - scenario_of_ttl(world, 1, 30));
    faults_leave(world, leader, false);
    world_call(world, away_ns - scenario_of_ttl(world, 0, 10), late_release_cut, leader->index, 0);
}

/* --- an acquire arrives once more, when its grant is over ------------------------------------ */

static void late_acquire_lose(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader || leader->index != message->host) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    if (rng_chance(&world->rng, 500)) {
        faults_cut(world, leader, scenario_of_ttl(world, 20, 200));
    }
    faults_lose_key(world, rng_index(&world->rng, 2));
    scenario_done(world);
}

void scenario_late_acquire(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = scenario_pick_other(world);
    other->repeat_acquire_ns = scenario_of_ttl(world, 100, 400);
    faults_leave(world, leader, rng_chance(&world->rng, 500));
    world_call(world, scenario_of_ttl(world, 50, 350), late_acquire_lose, other->index, 0);
}

/* --- a follower hears nothing for long; meanwhile the server's clock steps ------------------- */

static void silence_step(struct world *world, const struct message *message) {
    (void)message;
    struct host *leader = scenario_find_leader(world);
    struct host *other = &world->hosts[world->scenario.other];
    if (leader && leader != other) {
        faults_lose_key(world, 5);
        faults_cut(world, leader, scenario_of_ttl(world, 100, 200));
    }
    scenario_done(world);
}

void scenario_silence(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = scenario_pick_other(world);
    int64_t time_ns = scenario_of_ttl(world, 100, 450);
    faults_cut(world, other, time_ns);
    world_call(world, time_ns - scenario_of_ttl(world, 1, 50), silence_step, 0, 0);
}

/* --- an acquire is long under way, the key goes just before it arrives ----------------------- */

static void slow_grant_lose(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    struct host *other = &world->hosts[message->host];
    if (other->op != OP_ACQUIRE || !leader || leader->renewed_ns < world->now_ns - 40 * NS_PER_MS) {
        scenario_again(world, message, NS_PER_MS);
        return;
    }
    int64_t left_ns = sim_clock_read(&other->boot, world->now_ns) - other->op_sent.boot_ns;
    if (other->op_sent.boot_ns == 0 || left_ns < other->slow_acquire_ns - 15 * NS_PER_MS) {
        scenario_again(world, message, NS_PER_MS);
        return;
    }
    faults_cut(world, leader, scenario_of_ttl(world, 100, 200));
    faults_lose_key(world, rng_index(&world->rng, 2));
    other->slow_acquire_ns = 0;
    scenario_done(world);
}

void scenario_slow_grant(struct world *world, const struct message *message) {
    struct host *leader = scenario_find_leader(world);
    if (!leader) {
        scenario_again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = scenario_pick_other(world);
    other->slow_acquire_ns =
        election_attempt_ns(&other->config) * rng_between(&world->rng, 80, 97) / 100;
    world->scenario.tries = -8000; /* it takes luck: every millisecond counts */
    world_call(world, NS_PER_MS, slow_grant_lose, other->index, 0);
}
