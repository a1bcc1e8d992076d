#include "faults.h"

#include "host.h"
#include "past.h"
#include "store_faults.h"

void faults_crash(struct world *world, struct host *host, int64_t back_after_ns) {
    if (!host->running) {
        return;
    }
    world_count(world, STAT_FAULT_CRASH);
    world_trace(world, "host %d crashes", host->index);
    host_stop(world, host);
    struct message message = {
        .type = MESSAGE_START, .at_ns = world->now_ns + back_after_ns, .host = host->index};
    world_push(world, &message);
}

void faults_cut(struct world *world, struct host *host, int64_t time_ns) {
    world_count(world, STAT_FAULT_CUT);
    world_trace(world, "host %d is cut off from the store for %lld ms", host->index,
                (long long)(time_ns / NS_PER_MS));
    host->cut_until_ns = world->now_ns + time_ns;
}

void faults_deafen(struct world *world, struct host *host, int64_t time_ns) {
    world_count(world, STAT_FAULT_DEAF);
    world_trace(world, "host %d hears no replies for %lld ms", host->index,
                (long long)(time_ns / NS_PER_MS));
    host->deaf_until_ns = world->now_ns + time_ns;
}

void faults_leave(struct world *world, struct host *host, bool drain) {
    if (!host->running) {
        return;
    }
    world_count(world, drain ? STAT_FAULT_DRAIN : STAT_FAULT_RESIGN);
    struct message message = {.type = MESSAGE_LEAVE,
                              .at_ns = world->now_ns,
                              .host = host->index,
                              .epoch = host->epoch,
                              .flag = drain};
    world_push(world, &message);
}

bool faults_vm_pause(struct world *world, struct host *host, int64_t time_ns) {
    if (host->paused_until_ns > world->now_ns ||
        (host->real_back_ns != 0 &&
         world->now_ns - host->real_back_ns < 2 * world->plan.ttl_most_ns)) {
        return false;
    }
    world_count(world, STAT_FAULT_VM_PAUSE);
    host_pause(world, host, time_ns, true);
    return true;
}

/* No lease counts on REALTIME to show the last VM pause, or it has been seen to. */
static bool pause_is_seen(const struct host *host) {
    const struct grant_book *book = &host->book;
    if (host->op != OP_NONE && host->op_sent.boot_ns < host->vm_resumed_ns) {
        return false; /* its answer would count from before the pause */
    }
    return !host->running || !book->known || book->dead || book->doubted_ns != 0 ||
           host->vm_resumed_ns == 0 || book->sent_ns >= host->vm_resumed_ns;
}

bool faults_step_real(struct world *world, struct host *host, int64_t step_ns) {
    if (host->paused_until_ns > world->now_ns || (step_ns < 0 && !pause_is_seen(host))) {
        return false;
    }
    if (step_ns < 0) {
        host->real_back_ns = world->now_ns;
    }
    world_count(world, step_ns > 0 ? STAT_FAULT_REAL_FORWARD : STAT_FAULT_REAL_BACK);
    world_trace(world, "host %d: REALTIME steps by %lld ms", host->index,
                (long long)(step_ns / NS_PER_MS));
    sim_clock_set(&host->real, world->now_ns, sim_clock_read(&host->real, world->now_ns) + step_ns);
    return true;
}

static int64_t of_ttl(struct world *world, int64_t low_percent, int64_t high_percent) {
    int64_t ttl_ns = world->plan.ttl_most_ns;
    return rng_between(&world->rng, ttl_ns * low_percent / 100, ttl_ns * high_percent / 100);
}

static int64_t either_way(struct world *world, int64_t step_ns) {
    return rng_chance(&world->rng, 500) ? step_ns : -step_ns;
}

/* The server's clock comes to where the key is over, or a little further. */
static bool step_beyond_key(struct world *world) {
    const struct lock_key *key = &world->store.key;
    model_store_expire(&world->store, world->now_ns);
    if (!key->present || key->expires_ms < 0) {
        return false;
    }
    int64_t left_ns =
        (key->expires_ms + 1) * NS_PER_MS - sim_clock_read(&world->store.clock, world->now_ns);
    return store_step_clock(world,
                            left_ns + rng_between(&world->rng, -20 * NS_PER_MS, 200 * NS_PER_MS));
}

bool faults_lose_key(struct world *world, int kind) {
    struct store_copy copy = past_before(world, of_ttl(world, 0, 300));
    switch (kind) {
    case 0:
        store_delete_key(world);
        return true;
    case 1:
        store_flush(world);
        return true;
    case 2:
        store_promote(world, &copy, either_way(world, of_ttl(world, 0, 200)));
        return true;
    case 3:
        store_restart(world, true);
        return true;
    case 4:
        store_restore(world, &copy);
        return true;
    case 5:
        return step_beyond_key(world);
    default:
        return store_roll_back(world, &copy, rng_chance(&world->rng, 500));
    }
}

static void fail_server(struct world *world, int kind) {
    struct store_copy copy = past_before(world, of_ttl(world, 0, 400));
    int64_t time_ns = of_ttl(world, 5, 150);
    switch (kind) {
    case 0:
        store_restart(world, false);
        break;
    case 1:
        store_promote_back(world, &copy);
        break;
    case 2:
        store_persist_key(world);
        break;
    case 3:
        store_delete_record(world);
        break;
    case 4:
        store_damage_record(world);
        break;
    case 5:
        store_step_clock(world,
                         either_way(world, rng_chance(&world->rng, 500) ? of_ttl(world, 1, 20)
                                                                        : of_ttl(world, 20, 500)));
        break;
    default:
        world_count(world, kind == 6 ? STAT_FAULT_STORE_DOWN : STAT_FAULT_NOT_MASTER);
        world_trace(world, "  store: %s for %lld ms", kind == 6 ? "down" : "not a master",
                    (long long)(time_ns / NS_PER_MS));
        *(kind == 6 ? &world->store_down_until_ns : &world->store_replica_until_ns) =
            world->now_ns + time_ns;
        break;
    }
}

static void fail_host(struct world *world, struct host *host, int kind) {
    switch (kind) {
    case 0:
        faults_crash(world, host, of_ttl(world, 0, 200));
        break;
    case 1:
        world_count(world, STAT_FAULT_PAUSE);
        host_pause(world, host, of_ttl(world, 5, 300), false);
        break;
    case 2:
        world_count(world, STAT_FAULT_STALL);
        host_pause(world, host, rng_between(&world->rng, 1, 2 * host->config.margin_ns), false);
        break;
    case 3:
        faults_vm_pause(world, host, of_ttl(world, 5, 300));
        break;
    case 4:
    case 5:
        faults_leave(world, host, kind == 4);
        break;
    case 6:
        faults_step_real(world, host, either_way(world, of_ttl(world, 1, 500)));
        break;
    case 7:
        faults_cut(world, host, of_ttl(world, 10, 300));
        break;
    default:
        faults_deafen(world, host, of_ttl(world, 10, 200));
        break;
    }
}

void faults_random(struct world *world) {
    struct rng *rng = &world->rng;
    int kind = rng_index(rng, 20);
    if (kind < 11) {
        fail_host(world, &world->hosts[rng_index(rng, world->plan.hosts)], rng_index(rng, 9));
    } else if (kind < 16) {
        faults_lose_key(world, rng_index(rng, LOSSES));
    } else {
        fail_server(world, rng_index(rng, 8));
    }
}
