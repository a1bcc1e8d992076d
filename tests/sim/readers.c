#include "readers.h"

#include "checks.h"
#include "host.h"

void readers_ask(struct world *world, struct host *host) {
    if (!host_is_awake(world, host) || host->readers_stopped) {
        return;
    }
    struct instant now = host_now(world, host);
    int64_t doubted_ns = host->handouts.doubted_ns;
    struct answer answer = view_answer(&host->published, now, &host->handouts);
    world_count(world, STAT_READS);
    if (answer.leader) {
        world_count(world, STAT_LEADER_READS);
    }
    checks_answer(world, host, now, &answer);
    if (host->handouts.doubted_ns != doubted_ns) {
        /* The app lets the core know soon. */
        world_count(world, STAT_DOUBTS);
        struct message tick = {.type = MESSAGE_TICK,
                               .at_ns = world->now_ns + rng_between(&world->rng, 1000, NS_PER_MS),
                               .host = host->index,
                               .epoch = host->epoch,
                               .number = host->timer};
        world_push(world, &tick);
    }
}

bool readers_would_lead(const struct world *world, const struct host *host) {
    if (!host_is_awake(world, host) || host->readers_stopped) {
        return false;
    }
    struct handouts unnoted = host->handouts;
    return view_answer(&host->published, host_now(world, host), &unnoted).leader;
}

int readers_leader(const struct world *world) {
    for (int i = 0; i < world->plan.hosts; i++) {
        if (readers_would_lead(world, &world->hosts[i])) {
            return i;
        }
    }
    return -1;
}
