#include "store_faults.h"

#include "past.h"
#include "session.h"

#include <string.h>

static void disturbed(struct world *world) {
    world->store_disturbed_ns = world->now_ns;
    past_note(world);
}

static void new_server(struct world *world) {
    if (world->store.server.run == 0) {
        return; /* it never says who it is */
    }
    world->servers++;
    world->store.server = (struct server_id){.run = world->servers, .repl = world->servers};
}

/* A store that watches its lock tells the holder. Redis does not, others do. */
static void tell_holder(struct world *world) {
    const struct lock_key *key = &world->store.key;
    const struct host *host = &world->hosts[key->host];
    if (!key->present || !host->running ||
        !rng_chance(&world->rng, world->plan.kind == KIND_SESSION ? 600 : 200) ||
        memcmp(host->book.nonce, key->nonce, NONCE_BYTES) != 0) {
        return;
    }
    struct message message = {.type = MESSAGE_LOST,
                              .at_ns = world->now_ns + rng_between(&world->rng, 1, 5 * NS_PER_MS),
                              .host = host->index,
                              .epoch = host->epoch};
    message.number = key->session;
    message.body.reply.outcome = OUTCOME_NO;
    message.body.reply.reason = REASON_RENEWAL_REFUSED;
    world_push(world, &message);
}

void store_delete_key(struct world *world) {
    world_count(world, STAT_FAULT_KEY_DELETED);
    world_trace(world, "  store: the key is deleted");
    tell_holder(world);
    if (world->plan.kind == KIND_SESSION) {
        session_end(world, world->store.key.session); /* pg_terminate_backend */
    }
    world->store.key.present = false;
    disturbed(world);
}

/* A file is all that there is: it can be replaced. */
static bool is_kernel(struct world *world) {
    if (world->plan.kind == KIND_KERNEL) {
        store_delete_key(world);
    }
    return world->plan.kind == KIND_KERNEL;
}

void store_persist_key(struct world *world) {
    if (world->plan.kind != KIND_LEASE) {
        return;
    }
    world_count(world, STAT_FAULT_KEY_PERSISTED);
    world->store.key.expires_ms = -1;
}

void store_delete_record(struct world *world) {
    world_count(world, STAT_FAULT_RECORD_DELETED);
    world_trace(world, "  store: the record is deleted");
    world->store.record = (struct lock_record){.present = false};
    disturbed(world);
}

void store_damage_record(struct world *world) {
    world_count(world, STAT_FAULT_RECORD_DAMAGED);
    world_trace(world, "  store: the record has lost a field");
    world->store.record.complete = false;
    disturbed(world);
}

static void empty_store(struct world *world) {
    session_end_all(world);
    world->store.key.present = false;
    world->store.record = (struct lock_record){.present = false};
    disturbed(world);
}

void store_flush(struct world *world) {
    world_count(world, STAT_FAULT_FLUSHED);
    world_trace(world, "  store: FLUSHALL");
    empty_store(world);
}

void store_restart(struct world *world, bool empty) {
    if (is_kernel(world)) {
        return;
    }
    world_count(world, empty ? STAT_FAULT_RESTARTED_EMPTY : STAT_FAULT_RESTARTED);
    world_trace(world, "  store: restarted%s", empty ? ", empty" : "");
    new_server(world);
    if (world->plan.kind == KIND_SESSION) {
        session_end_all(world);
    }
    if (empty) {
        empty_store(world);
    }
    disturbed(world);
}

static void put(struct world *world, const struct store_copy *copy) {
    world->store.key = copy->key;
    world->store.record = copy->record;
    if (world->plan.kind == KIND_SESSION) {
        session_end_all(world); /* locks are not in the data */
    }
    disturbed(world);
    world_trace(world, "  store: data of %lld ms ago, token %llu%s, key %s",
                (long long)((world->now_ns - copy->at_ns) / NS_PER_MS),
                (unsigned long long)copy->record.token, copy->record.clean ? " clean" : "",
                copy->key.present ? "there" : "gone");
}

void store_restore(struct world *world, const struct store_copy *copy) {
    if (is_kernel(world)) {
        return;
    }
    world_count(world, STAT_FAULT_RESTORED);
    world_trace(world, "  store: a snapshot is restored");
    new_server(world);
    put(world, copy);
}

void store_promote(struct world *world, const struct store_copy *copy, int64_t ahead_ns) {
    if (is_kernel(world)) {
        return;
    }
    world_count(world, STAT_FAULT_PROMOTED);
    world_trace(world, "  store: a replica is promoted, its clock %lld ms ahead",
                (long long)(ahead_ns / NS_PER_MS));
    new_server(world);
    sim_clock_set(&world->store.clock, world->now_ns,
                  sim_clock_read(&world->store.clock, world->now_ns) + ahead_ns);
    put(world, copy);
}

void store_promote_back(struct world *world, const struct store_copy *copy) {
    if (is_kernel(world)) {
        return;
    }
    if (world->store.server.run == 0) {
        return;
    }
    world_count(world, STAT_FAULT_PROMOTED_BACK);
    world_trace(world, "  store: the master of old is promoted again");
    world->servers++;
    world->store.server = (struct server_id){.run = copy->server.run, .repl = world->servers};
    put(world, copy);
}

/* Whether every process has measured the server's clock since it last stepped. */
static bool measured(const struct world *world) {
    for (int i = 0; i < world->plan.hosts; i++) {
        if (world->hosts[i].running && world->hosts[i].measured_ns <= world->store_stepped_ns) {
            return false;
        }
    }
    return true;
}

/* Whether whoever vouches for the clock either sees the step or has the margin for it. */
static bool is_covered(const struct world *world, int64_t step_ns) {
    const struct plan *plan = &world->plan;
    int64_t size_ns = step_ns < 0 ? -step_ns : step_ns;
    return plan->margin_least_ns == plan->margin_most_ns || size_ns <= plan->margin_least_ns / 4 ||
           size_ns > plan->margin_most_ns / 2;
}

bool store_step_clock(struct world *world, int64_t step_ns) {
    if (!measured(world) || !is_covered(world, step_ns)) {
        return false;
    }
    world_count(world, step_ns > 0 ? STAT_FAULT_STORE_FORWARD : STAT_FAULT_STORE_BACK);
    world_trace(world, "  store: its clock steps by %lld ms", (long long)(step_ns / NS_PER_MS));
    sim_clock_set(&world->store.clock, world->now_ns,
                  sim_clock_read(&world->store.clock, world->now_ns) + step_ns);
    world->store_stepped_ns = world->now_ns;
    disturbed(world);
    return true;
}

/* Whether every candidate can tell that something was lost. One that vouches for the clock is sure
 * to see it go back by more than half a margin. */
static bool rollback_is_told(const struct world *world, const struct store_copy *copy, bool right) {
    bool clock_tells = !right && world->now_ns - copy->at_ns > world->plan.margin_most_ns / 2;
    for (int i = 0; i < world->plan.hosts; i++) {
        const struct host *host = &world->hosts[i];
        if (!host->running) {
            continue;
        }
        if (host->election.seen_token < world->greatest_token) {
            return false;
        }
        bool behind = copy->record.token < host->election.seen_token;
        bool held_since = copy->record.end_us < host->election.proof.held_seen_us;
        if (!clock_tells && !behind && !held_since) {
            return false;
        }
    }
    return true;
}

bool store_roll_back(struct world *world, const struct store_copy *copy, bool right) {
    if (world->plan.kind != KIND_LEASE || !measured(world) ||
        !rollback_is_told(world, copy, right) || !is_covered(world, world->now_ns - copy->at_ns) ||
        copy->server.run != world->store.server.run ||
        copy->server.repl != world->store.server.repl) {
        return false;
    }
    world_count(world, STAT_FAULT_ROLLED_BACK);
    world_trace(world, "  store: its VM is rolled back%s", right ? ", its clock is right" : "");
    queue_drop(&world->queue, MESSAGE_REQUEST);
    put(world, copy);
    if (!right) {
        int64_t now_ns = sim_clock_read(&world->store.clock, world->now_ns);
        sim_clock_set(&world->store.clock, world->now_ns, now_ns - (world->now_ns - copy->at_ns));
        world->store_stepped_ns = world->now_ns;
    }
    world->no_start_until_ns = world->now_ns + world->plan.ttl_most_ns * 13 / 10;
    return true;
}
