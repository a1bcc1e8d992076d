#include "checks.h"

#include "resource.h"

#include <string.h>

/*
 * P2: of two grants the later has the greater token, and no token is published by two grants. The
 * later one is the one whose published token was issued later: a grant that waited gets its own at
 * the end of the wait.
 * Excused where the promise says so: the record was lost and the server's clock is behind the
 * token that was lost with it.
 */

static struct minted *find(struct world *world, uint64_t token, const unsigned char *nonce) {
    unsigned kept = world->minted_count < TOKENS_MOST ? world->minted_count : TOKENS_MOST;
    for (unsigned i = 0; i < kept; i++) {
        struct minted *minted = &world->minted[(world->minted_count - 1 - i) % TOKENS_MOST];
        if (minted->token == token && memcmp(minted->nonce, nonce, NONCE_BYTES) == 0) {
            return minted;
        }
    }
    return NULL;
}

void checks_token_issued(struct world *world, const struct lock_request *request,
                         const struct lock_result *result) {
    if (result->granted) {
        world_count(world, STAT_GRANTS);
    }
    if (!result->minted) {
        return;
    }
    unsigned order = world->minted_count++;
    struct minted *minted = &world->minted[order % TOKENS_MOST];
    *minted = (struct minted){
        .token = result->reply.token,
        .order = order,
        .clock_ms = (uint64_t)(model_store_now_us(&world->store, world->now_ns) / 1000),
        .recorded = result->recorded_token,
        .at_ns = world->now_ns};
    memcpy(minted->nonce, request->nonce, NONCE_BYTES);
    if (minted->token > world->greatest_token) {
        world->greatest_token = minted->token;
    }
}

/* The record did not know the older token, and the clock had not come so far when this one was
 * issued. One that was issued before a wait is issued anew after it: there the clock of now counts.
 */
static bool excused(const struct world *world, bool waited, const struct minted *minted,
                    uint64_t older) {
    uint64_t clock_ms = minted->clock_ms;
    if (waited && world->now_ns - minted->at_ns > world->plan.ttl_most_ns * 9 / 10) {
        clock_ms = (uint64_t)(model_store_now_us(&world->store, world->now_ns) / 1000);
    }
    return minted->recorded < older && clock_ms <= older;
}

static bool follows(struct world *world, const struct host *host, struct minted *minted,
                    const struct published_token *other) {
    if (memcmp(other->nonce, minted->nonce, NONCE_BYTES) == 0) {
        return other->token == minted->token; /* a grant carries one token */
    }
    bool later = minted->order > other->order;
    if (minted->token != other->token && later == (minted->token > other->token)) {
        return true;
    }
    struct minted *younger = later ? minted : find(world, other->token, other->nonce);
    if (younger &&
        excused(world, later && host->waited, younger, later ? other->token : minted->token)) {
        world_count(world, STAT_TOKENS_EXCUSED);
        younger->excused = true;
        return true;
    }
    return false;
}

bool checks_token_excused(const struct world *world, unsigned order) {
    const struct minted *minted = &world->minted[order % TOKENS_MOST];
    return minted->order != order || minted->excused; /* nobody knows any more */
}

void checks_token_answered(struct world *world, const struct host *host, uint64_t token) {
    struct minted *minted = find(world, token, host->book.nonce);
    if (!minted) {
        world_violation(world, "P2: host %d answers token %llu, which was never issued",
                        host->index, (unsigned long long)token);
        return;
    }
    resource_told(world, host, token, minted->order);
    unsigned kept = world->token_count < TOKENS_MOST ? world->token_count : TOKENS_MOST;
    for (unsigned i = 0; i < kept; i++) {
        const struct published_token *other = &world->tokens[i];
        if (other->order == minted->order) {
            return; /* answered before */
        }
    }
    for (unsigned i = 0; i < kept; i++) {
        const struct published_token *other = &world->tokens[i];
        if (!follows(world, host, minted, other)) {
            world_violation(world,
                            "P2: host %d answers token %llu, issued as number %u, but number %u "
                            "was %llu",
                            host->index, (unsigned long long)token, minted->order, other->order,
                            (unsigned long long)other->token);
            return;
        }
    }
    struct published_token *published = &world->tokens[world->token_count++ % TOKENS_MOST];
    *published = (struct published_token){.token = token, .order = minted->order};
    memcpy(published->nonce, minted->nonce, NONCE_BYTES);
}
