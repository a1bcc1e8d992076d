#include "session.h"

#include "checks.h"
#include "host.h"
#include "network.h"
#include "past.h"

#include <string.h>

/* The connection's end reaches the server, unless the host is cut off from it. */
static void hang_up(struct world *world, struct host *host,
                    void (*end)(struct world *world, const struct message *)) {
    if (host->seat.session != 0 &&
        (host->cut_until_ns <= world->now_ns || world->plan.kind == KIND_KERNEL)) {
        int64_t way_ns = rng_between(&world->rng, world->network.least_ns, world->network.most_ns);
        if (rng_chance(&world->rng, world->network.slow) && world->plan.kind == KIND_SESSION) {
            way_ns = rng_between(&world->rng, way_ns, host->config.ttl_ns);
        }
        world_call(world, world->plan.kind == KIND_KERNEL ? 0 : way_ns, end, host->index,
                   host->seat.session);
    }
    host->seat = (struct sim_seat){.session = 0};
}

static void ended(struct world *world, const struct message *message) {
    session_end(world, (unsigned)message->number);
}

void session_host_stops(struct world *world, struct host *host) {
    hang_up(world, host, ended);
}

void session_lost(struct world *world, struct host *host) {
    bool held = host->seat.held;
    world_trace(world, "host %d: its connection is gone%s", host->index,
                held ? ", and the lock with it" : "");
    hang_up(world, host, ended);
    if (held) {
        struct election_event event = {.type = EVENT_LOST};
        event.reply.outcome = OUTCOME_NO;
        event.reply.reason = REASON_STORE_UNREACHABLE;
        event.reply.sent = host_now(world, host);
        event.reply.expires_in_ns = -1;
        host_event(world, host, &event);
    }
}

/* What the operation begins with, as far as the process knows. */
static enum session_stage first_stage(const struct host *host) {
    const struct lock_request *request = &host->op_request;
    const struct sim_seat *seat = &host->seat;
    bool ours = seat->held && memcmp(seat->nonce, request->nonce, NONCE_BYTES) == 0;
    switch (request->op) {
    case OP_ACQUIRE:
        return ours ? STAGE_PROBE : !seat->held && request->take ? STAGE_TRY : STAGE_LOOK;
    case OP_RENEW:
        return ours ? STAGE_PROBE : STAGE_LOOK;
    case OP_RELEASE:
        if (request->clean && request->token != 0 && request->server[0] != '\0') {
            return STAGE_MARK;
        }
        return ours ? STAGE_UNLOCK : STAGE_LOOK;
    case OP_NONE:
        break;
    }
    return STAGE_OVER;
}

static void send_stage(struct world *world, struct host *host, enum session_stage stage) {
    struct lock_request *request = &host->op_request;
    request->stage = (int)stage;
    request->session = host->seat.session;
    if (stage == STAGE_PROBE) {
        request->token = host->seat.minted ? host->seat.token : 0;
    }
    if (host->seat.silent_since_ns == 0) {
        host->seat.silent_since_ns = host_now(world, host).boot_ns;
    }
    network_put(world, host);
}

void session_send(struct world *world, struct host *host) {
    if (host->seat.session == 0 && host->cut_until_ns <= world->now_ns &&
        world->store_down_until_ns <= world->now_ns) {
        host->seat.session = session_open(world, host);
    }
    if (host->seat.session != 0) {
        send_stage(world, host, first_stage(host));
    }
}

void session_request(struct world *world, const struct message *message) {
    struct message back = {.type = MESSAGE_REPLY,
                           .host = message->host,
                           .epoch = message->epoch,
                           .number = message->number,
                           .word = message->body.request.stage};
    struct lock_result result;
    bool replica = world->store_replica_until_ns > world->now_ns;
    if (replica) {
        result = (struct lock_result){.granted = false};
        result.reply.reason = REASON_STORE_REFUSED;
    } else if (!session_apply(world, &message->body.request, &result)) {
        back.flag = true; /* reset */
    }
    if (!replica && !back.flag) {
        network_trace_request(world, message, &result);
        checks_token_issued(world, &message->body.request, &result);
        past_note(world);
        if (result.released) {
            network_wake_all(world, result.clean);
        }
    }
    const struct lock_key *key = &world->store.key;
    unsigned session = message->body.request.session;
    back.life = key->present && key->session == session ? session : 0; /* whether it is held */
    back.body.reply = result.reply;
    if (back.word == STAGE_TRY && result.reply.outcome == OUTCOME_YES) {
        memcpy(back.body.reply.holder_nonce, message->body.request.nonce, NONCE_BYTES);
    }
    network_put_back(world, &back);
}

static void unsure(struct message *message) {
    message->body.reply =
        (struct store_reply){.outcome = OUTCOME_UNSURE, .reason = REASON_STORE_REFUSED};
}

/* Held, and minted: what an acquire is told. */
static void tell_grant(const struct sim_seat *seat, struct store_reply *reply) {
    reply->prior = seat->prior;
    reply->doubt = seat->doubt;
    reply->longest_ttl_ns = seat->longest_ttl_ns;
}

/* What an answer on the lock's connection says of it, whether anybody waits for it or not. */
void session_learn(struct host *host, const struct message *message) {
    struct sim_seat *seat = &host->seat;
    const struct store_reply *reply = &message->body.reply;
    if (message->word == STAGE_TRY && reply->outcome == OUTCOME_YES &&
        message->life == seat->session) {
        seat->held = true;
        seat->minted = false;
        memcpy(seat->nonce, reply->holder_nonce, NONCE_BYTES);
    } else if (message->word == STAGE_UNLOCK || message->word == STAGE_GIVE_UP ||
               (message->word == STAGE_PROBE && message->life == 0)) {
        seat->held = seat->minted = false;
    }
}

static enum session_stage after_lock(const struct host *host, enum session_stage stage,
                                     const struct store_reply *reply) {
    bool yes = reply->outcome == OUTCOME_YES;
    bool minted = host->seat.minted;
    if (yes && (stage == STAGE_TRY || (stage == STAGE_PROBE && !minted))) {
        return STAGE_MINT;
    }
    return stage == STAGE_PROBE && yes && host->op_request.raise_token ? STAGE_RAISE : STAGE_OVER;
}

static enum session_stage after_row(struct host *host, enum session_stage stage,
                                    const struct store_reply *reply) {
    struct sim_seat *seat = &host->seat;
    bool yes = reply->outcome == OUTCOME_YES;
    if (stage == STAGE_MARK) {
        return host->op_request.session != 0 && seat->held ? STAGE_UNLOCK : STAGE_LOOK;
    }
    if (!yes) {
        return stage == STAGE_MINT ? STAGE_GIVE_UP : STAGE_OVER;
    }
    seat->minted = true;
    seat->token = reply->token;
    if (stage == STAGE_MINT) {
        seat->prior = reply->prior;
        seat->doubt = reply->doubt;
        seat->longest_ttl_ns = reply->longest_ttl_ns;
    }
    return STAGE_OVER;
}

bool session_reply(struct world *world, struct host *host, struct message *message) {
    enum session_stage stage = (enum session_stage)message->word;
    struct store_reply *reply = &message->body.reply;
    bool of_row = session_is_of_row((int)stage);
    if (message->flag) {
        session_lost(world, host);
        unsure(message);
        return true;
    }
    host->seat.silent_since_ns = 0;
    session_learn(host, message);
    if (stage == STAGE_GIVE_UP) {
        unsure(message);
        return true;
    }
    if (reply->outcome == OUTCOME_UNSURE && !(stage == STAGE_MINT && host->seat.held)) {
        return true;
    }
    enum session_stage next =
        of_row ? after_row(host, stage, reply) : after_lock(host, stage, reply);
    if (next != STAGE_OVER) {
        send_stage(world, host, next);
        return false;
    }
    if (host->op_request.op == OP_ACQUIRE && reply->outcome == OUTCOME_YES) {
        reply->token = host->seat.token;
        tell_grant(&host->seat, reply);
    }
    return true;
}

/* Giving the connection up gives the lock up: not before no lease can run any more. */
void session_timeout(struct world *world, struct host *host) {
    struct sim_seat *seat = &host->seat;
    int64_t dead_ns = seat->held ? host->config.ttl_ns : host->config.ttl_ns / 3;
    if (seat->session != 0 && seat->silent_since_ns != 0 &&
        host_now(world, host).boot_ns - seat->silent_since_ns >= dead_ns) {
        session_lost(world, host);
    }
}
