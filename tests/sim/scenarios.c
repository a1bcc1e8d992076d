#include "scenarios.h"

#include "faults.h"
#include "host.h"
#include "past.h"
#include "readers.h"
#include "store_faults.h"

#include <string.h>

#define TRIES_MOST 400

static int64_t of_ttl(struct world *world, int64_t low_percent, int64_t high_percent) {
    int64_t ttl_ns = world->plan.ttl_most_ns;
    return rng_between(&world->rng, ttl_ns * low_percent / 100, ttl_ns * high_percent / 100);
}

static void done(struct world *world) {
    world->scenario.busy = false;
}

/* The step is not possible yet: once more, a little later. */
static void again(struct world *world, const struct message *message, int64_t delay_ns) {
    if (++world->scenario.tries > TRIES_MOST) {
        done(world);
        return;
    }
    world_call(world, delay_ns, message->call, message->host, message->number);
}

/* The leader, noted in the scenario. */
static struct host *find_leader(struct world *world) {
    int leader = readers_leader(world);
    if (leader < 0) {
        return NULL;
    }
    world->scenario.leader = leader;
    return &world->hosts[leader];
}

static struct host *pick_other(struct world *world) {
    int hosts = world->plan.hosts;
    int other = (world->scenario.leader + 1 + rng_index(&world->rng, hosts - 1)) % hosts;
    world->scenario.other = other;
    return &world->hosts[other];
}

static void crash_others(struct world *world, int64_t back_after_ns) {
    for (int i = 0; i < world->plan.hosts; i++) {
        if (i != world->scenario.leader) {
            faults_crash(world, &world->hosts[i],
                         back_after_ns + rng_between(&world->rng, 0, 5 * NS_PER_MS));
        }
    }
}

/* --- the leader is cut off, then the key is lost -------------------------------------------- */

static void lose_now(struct world *world, const struct message *message) {
    (void)message;
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    done(world);
}

static void lose(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, of_ttl(world, 100, 300));
    world_call(world, rng_chance(&world->rng, 700) ? of_ttl(world, 0, 10) : of_ttl(world, 0, 80),
               lose_now, 0, 0);
}

/* --- a clean handover, then the data of that moment comes back ------------------------------- */

static bool fall_back_by(struct world *world, int kind) {
    struct store_copy *copy = &world->scenario.copy;
    bool behind = rng_chance(&world->rng, 500);
    switch (kind) {
    case 0:
        store_promote(world, copy, behind ? -of_ttl(world, 10, 95) : 0);
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
    done(world);
}

static void fall_back_led(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    struct scenario *scenario = &world->scenario;
    if (!leader || !past_clean(world, &scenario->copy) ||
        scenario->copy.record.token >= leader->published.token) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    scenario->kind = rng_index(&world->rng, 4);
    faults_cut(world, leader, of_ttl(world, 100, 300));
    if (scenario->kind < 3) {
        crash_others(world, of_ttl(world, 2, 20)); /* who comes back has seen no token */
    }
    world_call(world, rng_between(&world->rng, 0, 5 * NS_PER_MS), fall_back_now, 0, 0);
}

static void fall_back(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    if (rng_chance(&world->rng, 700)) {
        faults_leave(world, leader, rng_chance(&world->rng, 300));
    }
    world_call(world, of_ttl(world, 20, 300), fall_back_led, 0, 0);
}

/* --- the lock is lost, and the replies to whoever takes it are too --------------------------- */

static void retry_lose(struct world *world, const struct message *message) {
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    if (message->number > 0) {
        world_call(world, of_ttl(world, 5, 120), retry_lose, 0, message->number - 1);
    } else {
        done(world);
    }
}

static void retry(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, of_ttl(world, 100, 300));
    for (int i = 0; i < world->plan.hosts; i++) {
        if (i != leader->index && rng_chance(&world->rng, 800)) {
            faults_deafen(world, &world->hosts[i], of_ttl(world, 10, 80));
        }
    }
    world_call(world, of_ttl(world, 0, 10), retry_lose, 0, rng_chance(&world->rng, 300) ? 1 : 0);
}

/* --- a grant that never led is given back ---------------------------------------------------- */

static void unled_leave(struct world *world, const struct message *message) {
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (host_is_awake(world, host) && host->published.state == STATE_PENDING) {
            faults_leave(world, host, rng_chance(&world->rng, 500));
            done(world);
            return;
        }
    }
    again(world, message, 5 * NS_PER_MS);
}

static void unled(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, of_ttl(world, 100, 300));
    faults_lose_key(world, rng_index(&world->rng, LOSSES));
    world_call(world, of_ttl(world, 0, 30), unled_leave, 0, 0);
}

/* --- a release arrives once more, when the same process leads again -------------------------- */

static void late_release_cut(struct world *world, const struct message *message) {
    faults_cut(world, &world->hosts[message->host], of_ttl(world, 50, 200));
    done(world);
}

static void late_release(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    int64_t away_ns = world->plan.ttl_most_ns * 2 + of_ttl(world, 0, 100);
    leader->repeat_release_ns = away_ns;
    crash_others(world, away_ns - of_ttl(world, 1, 30));
    faults_leave(world, leader, false);
    world_call(world, away_ns - of_ttl(world, 0, 10), late_release_cut, leader->index, 0);
}

/* --- an acquire arrives once more, when its grant is over ------------------------------------ */

static void late_acquire_lose(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader || leader->index != message->host) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    if (rng_chance(&world->rng, 500)) {
        faults_cut(world, leader, of_ttl(world, 20, 200));
    }
    faults_lose_key(world, rng_index(&world->rng, 2));
    done(world);
}

static void late_acquire(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = pick_other(world);
    other->repeat_acquire_ns = of_ttl(world, 100, 400);
    faults_leave(world, leader, rng_chance(&world->rng, 500));
    world_call(world, of_ttl(world, 50, 350), late_acquire_lose, other->index, 0);
}

/* --- the leader's VM stands while its lease runs out ----------------------------------------- */

static void vm_back_step(struct world *world, const struct message *message) {
    struct host *host = &world->hosts[message->host];
    if (host->paused_until_ns > world->now_ns) {
        again(world, message, NS_PER_MS);
        return;
    }
    readers_ask(world, host);
    faults_step_real(world, host, -of_ttl(world, 50, 400));
    readers_ask(world, host);
    done(world);
}

static void vm_pause(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    int64_t time_ns = of_ttl(world, 40, 300);
    if (!leader || !faults_vm_pause(world, leader, time_ns)) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, time_ns + of_ttl(world, 0, 100));
    if (rng_chance(&world->rng, 500)) {
        world_call(world, time_ns + rng_between(&world->rng, 1, 20 * NS_PER_MS), vm_back_step,
                   leader->index, 0);
    } else {
        done(world);
    }
}

/* --- a follower hears nothing for long; meanwhile the server's clock steps ------------------- */

static void silence_step(struct world *world, const struct message *message) {
    (void)message;
    struct host *leader = find_leader(world);
    struct host *other = &world->hosts[world->scenario.other];
    if (leader && leader != other) {
        faults_lose_key(world, 5);
        faults_cut(world, leader, of_ttl(world, 100, 200));
    }
    done(world);
}

static void silence(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = pick_other(world);
    int64_t time_ns = of_ttl(world, 100, 450);
    faults_cut(world, other, time_ns);
    world_call(world, time_ns - of_ttl(world, 1, 50), silence_step, 0, 0);
}

/* --- an acquire is long under way, the key goes just before it arrives ----------------------- */

static void slow_grant_lose(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    struct host *other = &world->hosts[message->host];
    if (other->op != OP_ACQUIRE || !leader || leader->renewed_ns < world->now_ns - 40 * NS_PER_MS) {
        again(world, message, NS_PER_MS);
        return;
    }
    int64_t left_ns = sim_clock_read(&other->boot, world->now_ns) - other->op_sent.boot_ns;
    if (other->op_sent.boot_ns == 0 || left_ns < other->slow_acquire_ns - 15 * NS_PER_MS) {
        again(world, message, NS_PER_MS);
        return;
    }
    faults_cut(world, leader, of_ttl(world, 100, 200));
    faults_lose_key(world, rng_index(&world->rng, 2));
    other->slow_acquire_ns = 0;
    done(world);
}

static void slow_grant(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    if (!leader) {
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    struct host *other = pick_other(world);
    other->slow_acquire_ns =
        election_attempt_ns(&other->config) * rng_between(&world->rng, 80, 97) / 100;
    world->scenario.tries -= 20 * TRIES_MOST; /* it takes luck: every millisecond counts */
    world_call(world, NS_PER_MS, slow_grant_lose, other->index, 0);
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
            done(world);
            return;
        }
    }
    again(world, message, 2 * NS_PER_MS);
}

static void short_grant(struct world *world, const struct message *message) {
    struct host *leader = find_leader(world);
    int64_t ttl_ns = world->plan.ttl_most_ns;
    if (!leader || leader->config.ttl_ns < ttl_ns) {
        if (leader && world->scenario.tries % 50 == 0) {
            faults_leave(world, leader, false);
        }
        again(world, message, 20 * NS_PER_MS);
        return;
    }
    faults_cut(world, leader, of_ttl(world, 100, 200));
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (host != leader && host->config.ttl_ns == ttl_ns) {
            faults_deafen(world, host, of_ttl(world, 30, 80));
        }
    }
    faults_lose_key(world, rng_index(&world->rng, 2));
    world_call(world, NS_PER_MS, short_grant_ends, 0, 0);
}

void scenarios_start(struct world *world, int kind) {
    static void (*const starts[SCENARIOS])(struct world *, const struct message *) = {
        lose,         fall_back, retry,   unled,      late_release,
        late_acquire, vm_pause,  silence, slow_grant, short_grant,
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
