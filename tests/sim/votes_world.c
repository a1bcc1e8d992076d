#include "votes.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void votes_trace(const struct votes_world *world, const char *format, ...) {
    if (!world->schedule->trace) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    printf("%10.3f  ", (double)world->now_ns / 1e9);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

void votes_violation(struct votes_world *world, const char *format, ...) {
    if (world->violation[0] != '\0') {
        return; /* the first one tells most */
    }
    int used = snprintf(world->violation, sizeof world->violation,
                        "at %.6f: ", (double)world->now_ns / 1e9);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->violation + used, sizeof world->violation - (size_t)used, format, arguments);
    va_end(arguments);
}

void votes_plan(struct votes_world *world, int64_t after_ns, struct votes_event event) {
    if (world->event_count == VOTES_EVENTS) {
        votes_violation(world, "too many events: a storm");
        return;
    }
    event.at_ns = world->now_ns + (after_ns > 0 ? after_ns : 0);
    world->due_ns[world->event_count] = event.at_ns;
    world->orders[world->event_count] = world->order++;
    world->events[world->event_count++] = event;
}

static struct votes_event take_next(struct votes_world *world) {
    size_t best = 0;
    for (size_t i = 1; i < world->event_count; i++) {
        if (world->due_ns[i] < world->due_ns[best] ||
            (world->due_ns[i] == world->due_ns[best] && world->orders[i] < world->orders[best])) {
            best = i;
        }
    }
    struct votes_event event = world->events[best];
    size_t last = --world->event_count;
    world->events[best] = world->events[last];
    world->due_ns[best] = world->due_ns[last];
    world->orders[best] = world->orders[last];
    return event;
}

struct instant votes_now(const struct votes_world *world, const struct votes_host *host) {
    return (struct instant){sim_clock_read(&host->boot, world->now_ns),
                            sim_clock_read(&host->real, world->now_ns)};
}

static bool is_paused(const struct votes_world *world, const struct votes_host *host) {
    return world->now_ns < host->woken_until_ns;
}

static enum round_lists lists_of(int apart) {
    return apart == 0 ? LISTS_SAME : apart == 1 ? LISTS_ONE_APART : LISTS_FURTHER_APART;
}

static void carry_out(struct votes_world *world, int index,
                      const struct election_actions *actions) {
    struct votes_host *host = &world->hosts[index];
    struct round_ask ask = {.op = actions->op,
                            .seen_token = actions->seen_token,
                            .wait_ns = actions->wait_ns,
                            .take = actions->take,
                            .raise_token = actions->raise_token,
                            .clean = actions->clean,
                            .token = actions->token,
                            .timeout_ns = election_attempt_ns(&host->config)};
    struct votes_event wake = {.what = VOTES_WAKE, .host = index, .life = host->life};
    if (actions->op != OP_NONE) {
        memcpy(ask.nonce, actions->nonce, NONCE_BYTES);
        round_start(&host->round, &ask, votes_now(world, host).boot_ns);
    }
    if (actions->finished) {
        votes_trace(world, "host %d has drained", index);
        host->up = false;
    } else if (actions->wake_ns != NEVER_NS) {
        wake.request = ++host->wakes;
        votes_plan(world, sim_clock_reach(&host->boot, actions->wake_ns) - world->now_ns, wake);
    }
}

static void take_step(struct votes_world *world, int index, struct election_event *event) {
    struct votes_host *host = &world->hosts[index];
    event->now = votes_now(world, host);
    event->handouts = host->handouts;
    for (size_t i = 0; i < RANDOM_BYTES; i++) {
        event->random[i] = (unsigned char)rng_next(&world->rng);
    }
    votes_check_event(world, index, event);
    struct election_actions actions = election_step(&host->election, event);
    votes_check_step(world, index, &actions);
    host->published = host->election.view;
    carry_out(world, index, &actions);
}

/* Requests out, the answer in, as often as there are any. */
static void drive(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    struct round_request request;
    struct votes_event tick = {.what = VOTES_TICK, .host = index, .life = host->life};
    for (;;) {
        struct instant now = votes_now(world, host);
        while (round_next(&host->round, now.boot_ns, &request)) {
            votes_send(world, index, &request);
        }
        enum election_op op = host->election.op;
        struct election_event event = {.type = op == OP_ACQUIRE ? EVENT_ACQUIRED
                                               : op == OP_RENEW ? EVENT_RENEWED
                                                                : EVENT_RELEASED};
        if (!round_take(&host->round, &event.reply)) {
            break;
        }
        take_step(world, index, &event);
    }
    int64_t wake_ns = round_wake_ns(&host->round, votes_now(world, host).boot_ns);
    if (wake_ns != NEVER_NS) {
        tick.request = ++host->ticks;
        votes_plan(world, sim_clock_reach(&host->boot, wake_ns) - world->now_ns, tick);
    }
}

void votes_step(struct votes_world *world, int index, struct election_event event) {
    take_step(world, index, &event);
    drive(world, index);
}

void votes_start_host(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    struct votes_event wake = {.what = VOTES_WAKE, .host = index};
    host->up = true;
    host->life++;
    host->node_count = world->node_count;
    if (world->grows && rng_chance(&world->rng, 500)) {
        host->node_count--;
    }
    host->config = (struct election_config){.ttl_ns = host->ttl_ns,
                                            .margin_ns = host->margin_ns,
                                            .wait_floor_ns = VOTES_TTL_NS,
                                            .valid_for_ns = 2 * NS_PER_S,
                                            .drain_ns = 10 * NS_PER_S,
                                            .identity = "host"};
    struct round_config config = {
        .node_count = host->node_count, .ttl_ns = host->ttl_ns, .margin_ns = host->margin_ns};
    memset(&host->handouts, 0, sizeof host->handouts);
    memset(host->asked, 0, sizeof host->asked);
    election_init(&host->election, &host->config, 1, votes_now(world, host));
    round_init(&host->round, &config);
    host->published = host->election.view;
    votes_check_start(world, index);
    wake.life = host->life;
    wake.request = ++host->wakes;
    votes_plan(world, rng_between(&world->rng, 0, 3000) * NS_PER_MS, wake);
}

static void hear(struct votes_world *world, const struct votes_event *event) {
    struct votes_host *host = &world->hosts[event->host];
    struct election_event wake = {.type = EVENT_WAKE, .clean = event->result.clean};
    bool tries = round_told(&host->round, event->node, event->ask.nonce, &wake.clean);
    drive(world, event->host);
    if (tries) {
        votes_trace(world, "host %d hears of a release", event->host);
        votes_step(world, event->host, wake);
    }
}

/* Each draws from numbers of its own; none in the last part of the schedule. */
static void fault(struct votes_world *world, struct votes_event *event) {
    if (votes_is_quiet(world)) {
        votes_trace(world, "the faults are over");
        votes_heal(world);
        return;
    }
    struct rng usual = world->rng;
    unsigned number = world->faults++;
    world->rng.state = rng_mix(world->schedule->seed * UINT64_C(0xA24BAED4963EE407) + number);
    /* Some close together, and time to lead in between. */
    int64_t most_ms = rng_chance(&world->rng, 500) ? 2000 : 16000;
    votes_plan(world, rng_between(&world->rng, 0, most_ms) * NS_PER_MS, *event);
    if (number >= FAULTS_MOST || !world->schedule->left_out[number]) {
        votes_trace(world, "fault %u", number);
        votes_fault(world);
    }
    world->rng = usual;
}

/* BOOTTIME goes on where it stood. */
static void resume(struct votes_world *world) {
    for (int i = 0; i < world->host_count; i++) {
        struct votes_host *host = &world->hosts[i];
        if (host->vm_paused_ns != 0 && !is_paused(world, host)) {
            int64_t stood_ns = sim_clock_read(&host->boot, host->vm_paused_ns);
            sim_clock_set(&host->boot, world->now_ns, stood_ns);
            host->vm_paused_ns = 0;
        }
    }
}

static void handle(struct votes_world *world, struct votes_event *event) {
    struct votes_host *host = &world->hosts[event->host];
    resume(world);
    bool own = event->what == VOTES_WAKE || event->what == VOTES_TICK ||
               event->what == VOTES_REPLY || event->what == VOTES_TOLD || event->what == VOTES_READ;
    if (own && (!host->up || (event->what != VOTES_READ && event->life != host->life))) {
        return;
    }
    if (own && is_paused(world, host)) {
        votes_plan(world, host->woken_until_ns - world->now_ns, *event);
        return;
    }
    int64_t boot_ns = votes_now(world, host).boot_ns;
    struct election_event tick = {.type = EVENT_TICK};
    switch (event->what) {
    case VOTES_WAKE:
        if (event->request == host->wakes) {
            votes_step(world, event->host, tick);
        }
        break;
    case VOTES_TICK:
        if (event->request == host->ticks) {
            round_tick(&host->round, boot_ns);
            drive(world, event->host);
        }
        break;
    case VOTES_ARRIVES:
        votes_arrive(world, event);
        break;
    case VOTES_REPLY:
        if (host->asked[event->node] == event->request) {
            host->asked[event->node] = 0;
            event->result.reply.sent = event->sent;
            votes_check_answered(world, event);
            round_answered(&host->round, event->node, &event->result.reply,
                           lists_of(event->result.apart), boot_ns);
            drive(world, event->host);
        }
        break;
    case VOTES_TOLD:
        hear(world, event);
        break;
    case VOTES_FAULT:
        fault(world, event);
        break;
    case VOTES_READ:
        votes_ask(world, event->host);
        break;
    }
    /* Somebody asks after whatever happened. */
    for (int i = 0; i < world->host_count && world->violation[0] == '\0'; i++) {
        if (world->hosts[i].up && !is_paused(world, &world->hosts[i])) {
            votes_ask(world, i);
        }
    }
}

static void check_end(struct votes_world *world) {
    if (world->violation[0] == '\0' && world->last_lead_ns < world->end_ns - VOTES_TTL_NS) {
        votes_violation(world, "nobody leads, though all faults are long over");
    }
}

void votes_run(struct votes_world *world, const struct schedule *schedule) {
    memset(world, 0, offsetof(struct votes_world, events));
    world->schedule = schedule;
    world->rng.state = schedule->seed;
    world->now_ns = 1000 * NS_PER_S;
    world->end_ns = world->now_ns + 330 * NS_PER_S;
    world->last_leader = -1;
    world->forgets = rng_chance(&world->rng, 600);
    world->grows = rng_chance(&world->rng, 250);
    world->steps_back = rng_chance(&world->rng, 500);
    votes_plan_nodes(world);
    votes_plan_hosts(world);
    for (int i = 0; i < world->host_count; i++) {
        votes_start_host(world, i);
    }
    votes_plan(world, 5 * NS_PER_S, (struct votes_event){.what = VOTES_FAULT});
    while (world->event_count > 0 && world->violation[0] == '\0') {
        struct votes_event event = take_next(world);
        if (event.at_ns > world->end_ns) {
            check_end(world);
            break;
        }
        world->at_once = event.at_ns > world->now_ns ? 0 : world->at_once + 1;
        if (world->at_once > AT_ONCE_MOST) {
            votes_violation(world, "so much happens at one moment that time does not go on");
        }
        world->now_ns = event.at_ns;
        handle(world, &event);
    }
}
