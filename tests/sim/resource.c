#include "resource.h"

#include "checks.h"
#include "election/mutant.h"

/* A write of so long ago: its writer may be no leader any more. */
static void write_now(struct world *world, const struct message *message) {
    struct resource *resource = &world->resource;
    uint64_t token = message->number;
    unsigned order = message->life;
    if (token < resource->token && !MUTANT(RESOURCE_OPEN)) {
        world_count(world, STAT_WRITES_REFUSED);
        return;
    }
    world_count(world, STAT_WRITES);
    if (order < resource->order && !checks_token_excused(world, resource->order)) {
        world_violation(world,
                        "the resource takes a write with token %llu, issued as number %u, after "
                        "one with %llu, number %u",
                        (unsigned long long)token, order, (unsigned long long)resource->token,
                        resource->order);
    }
    resource->token = token > resource->token ? token : resource->token;
    resource->order = order > resource->order ? order : resource->order;
}

void resource_told(struct world *world, const struct host *host, uint64_t token, unsigned order) {
    struct rng *rng = &world->app_rng;
    if (!rng_chance(rng, 60)) {
        return;
    }
    int64_t after_ns = rng_chance(rng, 600) ? rng_between(rng, 0, host->config.valid_for_ns)
                                            : rng_between(rng, 0, 4 * world->plan.ttl_most_ns);
    struct message message = {.type = MESSAGE_CALL,
                              .at_ns = world->now_ns + after_ns,
                              .host = host->index,
                              .number = token,
                              .life = order,
                              .call = write_now};
    world_push(world, &message);
}
