#include "world.h"

#include "apps.h"
#include "checks.h"
#include "faults.h"
#include "host.h"
#include "network.h"
#include "past.h"
#include "plan.h"
#include "scenarios.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void world_push(struct world *world, const struct message *message) {
    queue_push(&world->queue, message);
}

void world_call(struct world *world, int64_t delay_ns,
                void (*call)(struct world *world, const struct message *message), int host,
                uint64_t number) {
    struct message message = {.type = MESSAGE_CALL,
                              .at_ns = world->now_ns + (delay_ns > 0 ? delay_ns : 0),
                              .host = host,
                              .number = number,
                              .call = call};
    world_push(world, &message);
}

void world_violation(struct world *world, const char *format, ...) {
    if (world->violation[0] != '\0') {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->violation, sizeof world->violation, format, arguments);
    va_end(arguments);
    world_trace(world, "VIOLATION %s", world->violation);
}

void world_trace(const struct world *world, const char *format, ...) {
    if (!world->schedule->trace) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    printf("%12.3f ms  ", (double)world->now_ns / 1e6);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

/* A fault draws from numbers of its own, so that it is the same one whatever happened before. */
static struct rng begin_fault(struct world *world, uint64_t number) {
    struct rng usual = world->rng;
    uint64_t seed = world->schedule->seed * UINT64_C(0xA24BAED4963EE407);
    world->rng = world->tape;
    world->rng.state = rng_mix(seed + number * UINT64_C(0x9FB21C651E98DF25));
    return usual;
}

static void end_fault(struct world *world, struct rng usual) {
    world->tape = world->rng;
    world->rng = usual;
}

/* The next fault, then the one after it; none once the chaos is over. */
static void fault(struct world *world, const struct message *message) {
    const struct plan *plan = &world->plan;
    uint64_t number = message->number;
    if (world->now_ns >= plan->chaos_until_ns) {
        return;
    }
    world->faults++;
    struct rng usual = begin_fault(world, number);
    world_call(world, rng_between(&world->rng, 1, 2 * plan->fault_every_ns), message->call, 0,
               number + 1);
    if (number >= FAULTS_MOST || !world->schedule->left_out[number]) {
        world_trace(world, "fault %llu", (unsigned long long)number);
        if (rng_chance(&world->rng, plan->scenario_permille)) {
            bool favourite = plan->favourite >= 0 && rng_chance(&world->rng, 800);
            scenarios_start(world, favourite ? plan->favourite : rng_index(&world->rng, SCENARIOS));
        } else {
            faults_random(world);
        }
    }
    end_fault(world, usual);
}

static void app_fault(struct world *world, const struct message *message) {
    uint64_t number = message->number;
    if (world->now_ns >= world->plan.chaos_until_ns || world->plan.calm) {
        return;
    }
    world->app_faults++;
    struct rng usual = begin_fault(world, FAULTS_MOST + number);
    world_call(world, rng_between(&world->rng, 1, 4 * world->plan.ttl_most_ns), message->call, 0,
               number + 1);
    if (number >= FAULTS_MOST || !world->schedule->left_out[FAULTS_MOST + number]) {
        world_trace(world, "fault %llu, of an application",
                    (unsigned long long)(FAULTS_MOST + number));
        apps_fault(world);
    }
    end_fault(world, usual);
}

static void sample(struct world *world, const struct message *message) {
    checks_sample(world);
    world_call(world, world->plan.ttl_most_ns / 20, message->call, 0, 0);
}

/* Everything works again and stays so. */
static void calm_down(struct world *world, const struct message *message) {
    (void)message;
    world_trace(world, "the faults are over");
    int64_t usual_ns = world->network.most_ns;
    world->network = (struct network){.least_ns = world->network.least_ns, .most_ns = usual_ns};
    world->store_down_until_ns = world->store_replica_until_ns = 0;
    world->scenario.busy = true; /* no other starts */
    apps_calm_down(world);
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        host->cut_until_ns = host->deaf_until_ns = 0;
        host->slow_acquire_ns = host->repeat_acquire_ns = host->repeat_release_ns = 0;
    }
}

static void start(struct world *world, const struct message *message) {
    struct host *host = &world->hosts[message->host];
    int64_t not_before_ns = host->paused_until_ns > world->no_start_until_ns
                                ? host->paused_until_ns
                                : world->no_start_until_ns;
    if (world->now_ns < not_before_ns) {
        struct message later = *message;
        later.at_ns = not_before_ns + 1;
        world_push(world, &later);
        return;
    }
    host_start(world, host);
}

/* A message for a process: it waits while the process stands, and is void once it is gone. */
static void deliver(struct world *world, const struct message *message) {
    struct host *host = &world->hosts[message->host];
    if (!host->running || message->epoch != host->epoch) {
        return;
    }
    if (host->paused_until_ns > world->now_ns) {
        struct message later = *message;
        later.at_ns = host->paused_until_ns + 1 + rng_between(&world->rng, 0, NS_PER_MS / 2);
        world_push(world, &later);
        return;
    }
    host_message(world, host, message);
}

static void dispatch(struct world *world, const struct message *message) {
    switch (message->type) {
    case MESSAGE_TICK:
    case MESSAGE_SEND:
    case MESSAGE_TIMEOUT:
    case MESSAGE_REPLY:
    case MESSAGE_WAKE:
    case MESSAGE_LOST:
    case MESSAGE_LEAVE:
    case MESSAGE_APP:
    case MESSAGE_READ:
        deliver(world, message);
        break;
    case MESSAGE_REQUEST:
        network_request(world, message);
        break;
    case MESSAGE_RESUME:
        host_resume(world, &world->hosts[message->host]);
        break;
    case MESSAGE_START:
        start(world, message);
        break;
    case MESSAGE_CALL:
        if (message->call) {
            message->call(world, message);
        }
        break;
    }
}

static void begin(struct world *world) {
    plan_make(world);
    apps_plan(world);
    world->tape = world->rng; /* what is left of it */
    world->rng.tape_left = 0;
    world->last_leader = -1;
    past_note(world);
    for (int i = 0; i < world->plan.hosts; i++) {
        struct message message = {.type = MESSAGE_START,
                                  .at_ns = rng_between(&world->rng, 1, world->plan.ttl_most_ns),
                                  .host = i};
        world_push(world, &message);
    }
    if (world->plan.fault_every_ns > 0) {
        world_call(world, rng_between(&world->rng, 1, 3 * world->plan.fault_every_ns), fault, 0, 0);
    }
    if (world->plan.apps) {
        world_call(world, rng_between(&world->app_rng, 1, 3 * world->plan.ttl_most_ns), app_fault,
                   0, 0);
    }
    world_call(world, world->plan.chaos_until_ns, calm_down, 0, 0);
    world_call(world, NS_PER_MS, sample, 0, 0);
}

void world_begin(struct world *world, const struct schedule *schedule, struct stats *stats) {
    memset(world, 0, offsetof(struct world, queue));
    memset((char *)world + offsetof(struct world, queue) + sizeof world->queue, 0,
           sizeof *world - offsetof(struct world, queue) - sizeof world->queue);
    queue_init(&world->queue);
    world->schedule = schedule;
    uint64_t seed = schedule->seed;
    world->rng.state = seed * UINT64_C(0xD1342543DE82EF95) + 1;
    world->app_rng.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 7;
    if (schedule->tape) { /* the plan first, then the faults */
        world->rng.tape = schedule->tape;
        world->rng.tape_left = schedule->tape_size;
    }
    world->stats = stats;
    begin(world);
}

bool world_step(struct world *world) {
    struct message message;
    if (world->violation[0] != '\0' || !queue_pop(&world->queue, &message)) {
        return false;
    }
    world->at_once = message.at_ns > world->now_ns ? 0 : world->at_once + 1;
    if (world->at_once > AT_ONCE_MOST) {
        world_violation(world, "liveness: so much happens at one moment that time does not go on");
        return false;
    }
    world->now_ns = message.at_ns;
    if (world->now_ns > world->plan.end_ns) {
        checks_end(world);
        return false;
    }
    dispatch(world, &message);
    return true;
}

void world_end(struct world *world) {
    world_count(world, STAT_SCHEDULES);
    world->stats->counts[STAT_VIRTUAL_SECONDS] += (uint64_t)(world->now_ns / NS_PER_S);
}

void world_run(struct world *world, const struct schedule *schedule, struct stats *stats) {
    world_begin(world, schedule, stats);
    while (world_step(world)) {
    }
    world_end(world);
}
