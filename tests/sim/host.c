#include "host.h"

#include "apps.h"
#include "checks.h"
#include "election/mutant.h"
#include "network.h"
#include "readers.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

struct instant host_now(const struct world *world, const struct host *host) {
    return (struct instant){.boot_ns = sim_clock_read(&host->boot, world->now_ns),
                            .real_ns = sim_clock_read(&host->real, world->now_ns)};
}

bool host_is_awake(const struct world *world, const struct host *host) {
    return host->running && host->paused_until_ns <= world->now_ns;
}

static void push(struct world *world, const struct host *host, enum message_type type,
                 int64_t at_ns, uint64_t number) {
    struct message message = {.type = type,
                              .at_ns = at_ns > world->now_ns ? at_ns : world->now_ns,
                              .host = host->index,
                              .epoch = host->epoch,
                              .number = number};
    world_push(world, &message);
}

void host_start(struct world *world, struct host *host) {
    if (host->running) {
        return;
    }
    host->running = true;
    host->draining = host->readers_stopped = false;
    host->epoch++;
    host->handouts = (struct handouts){0, 0, 0};
    host->book = (struct grant_book){.known = false};
    host->waited = false;
    host->op = OP_NONE;
    host->ticks = 0;
    host->measured_ns = 0;
    host->cut_until_ns = host->deaf_until_ns = 0;
    host->repeat_release_ns = host->repeat_acquire_ns = host->slow_acquire_ns = 0;
    election_init(&host->election, &host->config, rng_next(&world->rng) >> 16,
                  host_now(world, host));
    host->published = host->election.view;
    world_trace(world, "host %d starts as process %u", host->index, host->epoch);
    push(world, host, MESSAGE_TICK, world->now_ns, ++host->timer);
    push(world, host, MESSAGE_READ, world->now_ns + 1, 0);
    apps_start(world, host);
}

void host_stop(struct world *world, struct host *host) {
    session_host_stops(world, host);
    host->running = false;
    host->draining = false;
    host->op = OP_NONE;
}

/* The timer fires a little late, as timers do. */
static void plan_tick(struct world *world, struct host *host, int64_t wake_ns) {
    host->timer++;
    if (wake_ns == NEVER_NS) {
        return;
    }
    int64_t at_ns = sim_clock_reach(&host->boot, wake_ns);
    if (at_ns > world->plan.end_ns) {
        return;
    }
    int64_t most_ns = rng_chance(&world->rng, 250) ? 3 * NS_PER_MS : NS_PER_MS / 5;
    at_ns = at_ns > world->now_ns ? at_ns : world->now_ns;
    push(world, host, MESSAGE_TICK, at_ns + rng_between(&world->rng, 1000, most_ns), host->timer);
}

static void publish(struct world *world, struct host *host) {
    checks_view(world, host, &host->election.view);
    host->published = host->election.view;
}

static void obey(struct world *world, struct host *host, const struct election_actions *actions) {
    bool late = MUTANT(RELEASE_BEFORE_PUBLISH) && actions->op == OP_RELEASE;
    if (!late) {
        publish(world, host);
    }
    apps_actions(world, host, actions);
    if (actions->op != OP_NONE) {
        apps_check_operation(world, host, actions);
        checks_operation(world, host, actions);
        network_begin(world, host, actions);
    }
    if (late) {
        publish(world, host);
    }
    if (actions->finished) {
        world_count(world, actions->left_to_lapse ? STAT_DRAINS_LAPSED : STAT_DRAINS_RELEASED);
        world_trace(world, "host %d has drained%s", host->index,
                    actions->left_to_lapse ? ", the lease is left to lapse" : "");
        host_stop(world, host);
        push(world, host, MESSAGE_START,
             world->now_ns + rng_between(&world->rng, NS_PER_MS, 2 * host->config.ttl_ns), 0);
        return;
    }
    plan_tick(world, host, actions->wake_ns);
}

void host_event(struct world *world, struct host *host, struct election_event *event) {
    event->now = host_now(world, host);
    event->handouts = host->handouts;
    for (int i = 0; i < RANDOM_BYTES; i += 8) {
        uint64_t number = rng_next(&world->rng);
        memcpy(event->random + i, &number, sizeof number);
    }
    checks_event(world, host, event);
    world_count(world, STAT_STEPS);
    enum election_state before = host->published.state;
    struct election_actions actions = election_step(&host->election, event);
    checks_actions(world, host, &actions);
    obey(world, host, &actions);
    if (before != host->published.state || actions.op != OP_NONE) {
        static const char *const ops[] = {"", ", acquire", ", renew", ", release"};
        world_trace(world, "host %d %s (%s), token %llu%s%s%s%s", host->index,
                    election_state_name(host->published.state),
                    election_reason_name(host->published.reason),
                    (unsigned long long)host->published.token, ops[actions.op],
                    actions.op == OP_ACQUIRE && !actions.take ? " to look" : "",
                    actions.raise_token ? " raising" : "", actions.clean ? " clean" : "");
    }
    if (host->running && host->published.state == STATE_LEADER &&
        (before != STATE_LEADER || rng_chance(&world->rng, 300))) {
        readers_ask(world, host);
    }
}

/* A timer that fires again and again without time passing is a loop that burns a core. */
static void check_ticks(struct world *world, struct host *host) {
    if (world->now_ns - host->ticks_since_ns > 20 * NS_PER_MS) {
        host->ticks_since_ns = world->now_ns;
        host->ticks = 0;
    }
    if (++host->ticks > 200) {
        world_violation(world, "host %d: its timer fires without end", host->index);
    }
}

static void leave(struct world *world, struct host *host, bool drain) {
    world_trace(world, "host %d is asked to %s", host->index, drain ? "drain" : "resign");
    if (drain) {
        host->draining = true;
        if (host->config.drain_none) {
            host->readers_stopped = true; /* that is what the option says */
            checks_forget_validities(world, host);
        }
    }
    host_event(world, host, &(struct election_event){.type = drain ? EVENT_DRAIN : EVENT_RESIGN});
}

void host_message(struct world *world, struct host *host, const struct message *message) {
    struct election_event event = {.type = EVENT_TICK};
    switch (message->type) {
    case MESSAGE_TICK:
        if (message->number == host->timer) {
            check_ticks(world, host);
            host_event(world, host, &event);
        }
        break;
    case MESSAGE_WAKE:
        event.type = EVENT_WAKE;
        event.clean = message->flag;
        host_event(world, host, &event);
        break;
    case MESSAGE_LOST:
        if (world->plan.kind != KIND_LEASE) {
            if (message->number == host->seat.session) {
                session_lost(world, host);
            }
            break;
        }
        event.type = EVENT_LOST;
        event.reply = message->body.reply;
        host_event(world, host, &event);
        break;
    case MESSAGE_LEAVE:
        leave(world, host, message->flag);
        break;
    case MESSAGE_APP:
        apps_message(world, host, message);
        break;
    case MESSAGE_SEND:
    case MESSAGE_TIMEOUT:
    case MESSAGE_REPLY:
        network_host_message(world, host, message);
        break;
    case MESSAGE_READ:
        readers_ask(world, host);
        push(world, host, MESSAGE_READ,
             world->now_ns + rng_between(&world->rng, NS_PER_MS, 2 * host->read_every_ns), 0);
        break;
    case MESSAGE_REQUEST:
    case MESSAGE_RESUME:
    case MESSAGE_START:
    case MESSAGE_CALL:
        break;
    }
}

void host_pause(struct world *world, struct host *host, int64_t time_ns, bool vm) {
    if (host->paused_until_ns > world->now_ns) {
        return;
    }
    host->paused_until_ns = world->now_ns + time_ns;
    host->vm_paused_at_ns = vm ? world->now_ns : 0;
    world_trace(world, "host %d stands%s for %lld ms", host->index, vm ? ", its VM too," : "",
                (long long)(time_ns / NS_PER_MS));
    push(world, host, MESSAGE_RESUME, host->paused_until_ns, 0);
}

void host_resume(struct world *world, struct host *host) {
    if (host->vm_paused_at_ns != 0) {
        int64_t stood_at_ns = sim_clock_read(&host->boot, host->vm_paused_at_ns);
        sim_clock_set(&host->boot, world->now_ns, stood_at_ns);
        host->vm_paused_at_ns = 0;
        host->vm_resumed_ns = stood_at_ns;
        plan_tick(world, host, host->election.wake_ns);
    }
    world_trace(world, "host %d goes on", host->index);
    if (host->running && rng_chance(&world->rng, 500)) {
        readers_ask(world, host); /* before any other code of it runs */
    }
}
