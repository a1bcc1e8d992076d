/* Between candidates and nodes: what is sent may be lost, late, repeated, or answered to nobody. */
#include "votes.h"

#include <string.h>

#define ROUND_TRIP_MOST_NS (40 * NS_PER_MS)

bool votes_is_quiet(const struct votes_world *world) {
    return world->now_ns > world->end_ns - VOTES_QUIET_NS;
}

/* One direction; sometimes long after anybody waits for it. */
static int64_t way_of(struct votes_world *world) {
    bool late = rng_chance(&world->rng, schedule_is_off(world->schedule, PART_LATE) ? 0 : 15);
    return late && !votes_is_quiet(world) ? rng_between(&world->rng, 0, 12) * NS_PER_S
                                          : rng_between(&world->rng, 0, ROUND_TRIP_MOST_NS);
}

static bool is_lost(struct votes_world *world) {
    bool lost =
        rng_chance(&world->rng, schedule_is_off(world->schedule, PART_LOST_REQUESTS) ? 0 : 10);
    return lost && !votes_is_quiet(world);
}

static bool is_repeated(struct votes_world *world) {
    bool repeated =
        rng_chance(&world->rng, schedule_is_off(world->schedule, PART_REPEATED) ? 0 : 10);
    return repeated && !votes_is_quiet(world);
}

void votes_send(struct votes_world *world, int index, const struct round_request *request) {
    struct votes_host *host = &world->hosts[index];
    struct votes_event event = {.what = VOTES_ARRIVES,
                                .host = index,
                                .life = host->life,
                                .node = request->node,
                                .request = ++world->requests,
                                .sent = votes_now(world, host),
                                .sent_at_ns = world->now_ns};
    event.ask = (struct lock_request){.op = request->ask.op,
                                      .host = index,
                                      .ttl_ns = host->config.ttl_ns,
                                      .wait_ns = request->ask.wait_ns,
                                      .seen_token = request->ask.seen_token,
                                      .take = request->ask.take,
                                      .raise_token = request->ask.raise_token,
                                      .clean = request->ask.clean,
                                      .nodes = (1U << host->node_count) - 1};
    memcpy(event.ask.nonce, request->ask.nonce, NONCE_BYTES);
    memcpy(event.ask.server, request->server, SERVER_ID_MAX);
    if (request->ask.op == OP_RELEASE) {
        event.ask.token = request->ask.token;
    } else {
        event.ask.least = request->ask.token;
    }
    host->asked[request->node] = event.request;
    votes_check_sent(world, &event);
    int64_t way_ns = way_of(world);
    if (is_repeated(world)) { /* a good while later, when nobody waits for the answer */
        votes_plan(world, rng_between(&world->rng, 0, 4 * VOTES_TTL_NS), event);
    }
    if ((host->cut >> request->node & 1U) == 0 && !is_lost(world)) {
        votes_plan(world, way_ns, event);
    }
    event.what = VOTES_REPLY; /* its time is over */
    event.result = (struct lock_result){.granted = false};
    event.result.reply.reason = REASON_STORE_UNREACHABLE;
    votes_plan(world, request->ask.timeout_ns, event);
}

/* Whoever listens hears of it, or not. */
static void tell(struct votes_world *world, const struct votes_event *released) {
    for (int i = 0; i < world->host_count; i++) {
        struct votes_event event = *released;
        event.what = VOTES_TOLD;
        event.host = i;
        event.life = world->hosts[i].life;
        int64_t way_ns = way_of(world);
        bool listens = world->hosts[i].up && released->node < world->hosts[i].node_count &&
                       (world->hosts[i].cut >> released->node & 1U) == 0;
        if (listens && !is_lost(world)) {
            votes_plan(world, way_ns, event);
        }
    }
}

void votes_arrive(struct votes_world *world, struct votes_event *event) {
    if (world->down[event->node]) {
        return;
    }
    votes_check_arrived(world, event);
    model_store_apply(&world->nodes[event->node], &event->ask, world->now_ns, &event->result);
    if (event->result.released) {
        tell(world, event);
    }
    event->what = VOTES_REPLY;
    int64_t way_ns = way_of(world);
    if (!is_lost(world)) {
        votes_plan(world, way_ns, *event);
    }
}
