#include "network.h"

#include "checks.h"
#include "host.h"
#include "past.h"
#include "session.h"

#include <string.h>

/* One way, one message. Slow: around the attempt's timeout. Late: carried out long after. */
static int64_t travel_ns(struct world *world, const struct host *host, bool request) {
    struct rng *rng = &world->rng;
    const struct network *network = &world->network;
    if (request && rng_chance(rng, network->late)) {
        world_count(world, STAT_REQUESTS_LATE);
        return rng_between(rng, host->config.ttl_ns / 6, 4 * world->plan.ttl_most_ns);
    }
    if (rng_chance(rng, network->slow)) {
        return rng_between(rng, network->least_ns, host->config.ttl_ns / 4);
    }
    return rng_between(rng, network->least_ns, network->most_ns);
}

void network_begin(struct world *world, struct host *host, const struct election_actions *actions) {
    host->op = actions->op;
    host->op_number = ++world->operations;
    host->op_sent = (struct instant){0, 0};
    host->op_request = (struct lock_request){.op = actions->op,
                                             .host = host->index,
                                             .ttl_ns = host->config.ttl_ns,
                                             .wait_ns = actions->wait_ns,
                                             .seen_token = actions->seen_token,
                                             .token = actions->token,
                                             .take = actions->take,
                                             .raise_token = actions->raise_token,
                                             .clean = actions->clean};
    memcpy(host->op_request.nonce, actions->nonce, NONCE_BYTES);
    memcpy(host->op_request.server, actions->server, SERVER_ID_MAX);
    int64_t connect_ns =
        rng_chance(&world->rng, 20) ? rng_between(&world->rng, 0, host->config.ttl_ns / 8) : 1000;
    struct message message = {.type = MESSAGE_SEND,
                              .at_ns = world->now_ns + connect_ns,
                              .host = host->index,
                              .epoch = host->epoch,
                              .number = host->op_number};
    world_push(world, &message);
    message.type = MESSAGE_TIMEOUT;
    message.at_ns = sim_clock_reach(&host->boot, host_now(world, host).boot_ns +
                                                     election_attempt_ns(&host->config)) +
                    rng_between(&world->rng, 0, NS_PER_MS);
    world_push(world, &message);
}

static void answer(struct world *world, struct host *host, const struct store_reply *reply) {
    static const enum election_event_type types[] = {
        [OP_NONE] = EVENT_TICK,
        [OP_ACQUIRE] = EVENT_ACQUIRED,
        [OP_RENEW] = EVENT_RENEWED,
        [OP_RELEASE] = EVENT_RELEASED,
    };
    struct election_event event = {.type = types[host->op], .reply = *reply};
    event.reply.sent = host->op_sent;
    host->op = OP_NONE;
    host_event(world, host, &event);
}

static void answer_unsure(struct world *world, struct host *host, enum election_reason reason) {
    struct store_reply reply = {.outcome = OUTCOME_UNSURE, .reason = reason};
    answer(world, host, &reply);
}

static int64_t *repeat_of(struct host *host, enum election_op op) {
    return op == OP_RELEASE ? &host->repeat_release_ns : &host->repeat_acquire_ns;
}

/* The same request once more, a good while later, when nobody waits for the reply. */
static void repeat(struct world *world, struct host *host, struct message message) {
    int64_t *wanted_ns = repeat_of(host, message.body.request.op);
    bool directed = message.body.request.op != OP_RENEW && *wanted_ns > 0;
    if (!directed && !rng_chance(&world->rng, world->network.repeat)) {
        return;
    }
    world_count(world, STAT_REQUESTS_TWICE);
    message.flag = true;
    message.at_ns = world->now_ns + rng_between(&world->rng, 0, 4 * world->plan.ttl_most_ns);
    if (directed) {
        message.at_ns = world->now_ns + *wanted_ns;
        *wanted_ns = 0;
    }
    world_push(world, &message);
}

void network_put(struct world *world, struct host *host) {
    struct message message = {.type = MESSAGE_REQUEST,
                              .at_ns = world->now_ns + travel_ns(world, host, true),
                              .host = host->index,
                              .epoch = host->epoch,
                              .number = host->op_number};
    message.body.request = host->op_request;
    if (message.body.request.op == OP_ACQUIRE && host->slow_acquire_ns > 0 &&
        world->now_ns < world->plan.chaos_until_ns) {
        message.at_ns = world->now_ns + host->slow_acquire_ns;
    }
    if (world->plan.kind != KIND_LEASE) {
        message.at_ns =
            session_in_order(message.body.request.stage, &host->seat.arrives_ns, message.at_ns);
    }
    if (world->plan.kind == KIND_KERNEL) { /* no network, only a slow disk */
        world_push(world, &message);
        return;
    }
    if (world->plan.kind == KIND_LEASE) {
        repeat(world, host, message);
    }
    if (host->cut_until_ns > world->now_ns ||
        rng_chance(&world->rng, world->network.lose_request)) {
        world_count(world, STAT_REQUESTS_LOST);
        return;
    }
    world_push(world, &message);
}

static void send(struct world *world, struct host *host) {
    host->op_sent = host_now(world, host);
    host->op_sent_at_ns = world->now_ns;
    if (world->store_down_until_ns > world->now_ns && rng_chance(&world->rng, 500)) {
        answer_unsure(world, host, REASON_STORE_UNREACHABLE);
    } else if (world->plan.kind == KIND_LEASE) {
        network_put(world, host);
    } else {
        session_send(world, host);
    }
}

static void reply(struct world *world, struct host *host, struct message message) {
    if (world->plan.kind != KIND_LEASE && !session_reply(world, host, &message)) {
        return;
    }
    if (message.body.reply.outcome != OUTCOME_UNSURE &&
        host_now(world, host).boot_ns - host->op_sent.boot_ns < host->config.margin_ns / 5) {
        host->measured_ns = world->now_ns;
    }
    answer(world, host, &message.body.reply);
}

void network_host_message(struct world *world, struct host *host, const struct message *message) {
    if (host->op == OP_NONE || message->number != host->op_number) {
        if (message->type == MESSAGE_REPLY && world->plan.kind != KIND_LEASE) {
            session_learn(host, message);
        }
        return; /* of an attempt that is over: its connection is gone */
    }
    switch (message->type) {
    case MESSAGE_SEND:
        send(world, host);
        break;
    case MESSAGE_TIMEOUT:
        world_count(world, STAT_TIMEOUTS);
        if (world->plan.kind != KIND_LEASE) {
            session_timeout(world, host);
        }
        answer_unsure(world, host, REASON_STORE_UNREACHABLE);
        break;
    case MESSAGE_REPLY:
        if (world->plan.kind != KIND_KERNEL &&
            (host->cut_until_ns > world->now_ns || host->deaf_until_ns > world->now_ns)) {
            world_count(world, STAT_REPLIES_LOST);
            break;
        }
        reply(world, host, *message);
        break;
    case MESSAGE_TICK:
    case MESSAGE_WAKE:
    case MESSAGE_LOST:
    case MESSAGE_LEAVE:
    case MESSAGE_APP:
    case MESSAGE_REQUEST:
    case MESSAGE_READ:
    case MESSAGE_RESUME:
    case MESSAGE_START:
    case MESSAGE_CALL:
        break;
    }
}

/* Tells every subscriber, the one that released too. */
void network_wake_all(struct world *world, bool clean) {
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        if (!host->running || host->cut_until_ns > world->now_ns ||
            rng_chance(&world->rng, world->network.wake_lost)) {
            continue;
        }
        struct message message = {.type = MESSAGE_WAKE,
                                  .at_ns = world->now_ns + travel_ns(world, host, false),
                                  .host = i,
                                  .epoch = host->epoch,
                                  .flag = clean};
        world_push(world, &message);
    }
}

void network_trace_request(const struct world *world, const struct message *message,
                           const struct lock_result *result) {
    static const char *const ops[] = {"", "acquire", "renew", "release"};
    static const char *const stages[] = {"",       "tries", "looks",   "probes",  "mints",
                                         "raises", "marks", "unlocks", "gives up"};
    static const char *const outcomes[] = {"unsure", "yes", "no"};
    static const char *const priors[] = {"none", "end", "clean"};
    const struct lock_request *request = &message->body.request;
    const struct store_reply *reply = &result->reply;
    bool judged = request->op == OP_ACQUIRE && reply->outcome == OUTCOME_YES &&
                  (request->stage == STAGE_OVER || request->stage == STAGE_MINT);
    world_trace(world, "  store: %s %02x%02x of host %d%s: %s, token %llu%s%s%s",
                request->stage != STAGE_OVER ? stages[request->stage] : ops[request->op],
                request->nonce[0], request->nonce[1], request->host,
                message->flag ? " (a late copy)" : "", outcomes[reply->outcome],
                (unsigned long long)reply->token, judged ? ", prior " : "",
                judged ? priors[reply->prior] : "", result->clean ? ", marked clean" : "");
}

void network_put_back(struct world *world, struct message *message) {
    if (rng_chance(&world->rng, world->network.lose_reply) && world->plan.kind != KIND_KERNEL) {
        world_count(world, STAT_REPLIES_LOST);
        return;
    }
    struct host *host = &world->hosts[message->host];
    message->at_ns = world->now_ns + travel_ns(world, host, false);
    if (world->plan.kind != KIND_LEASE) {
        message->at_ns = session_in_order(message->word, &host->seat.answered_ns, message->at_ns);
    }
    world_push(world, message);
}

void network_request(struct world *world, const struct message *message) {
    struct host *host = &world->hosts[message->host];
    if (world->store_down_until_ns > world->now_ns) {
        return;
    }
    if (world->plan.kind != KIND_LEASE) {
        session_request(world, message);
        return;
    }
    struct message back = {.type = MESSAGE_REPLY,
                           .host = message->host,
                           .epoch = message->epoch,
                           .number = message->number};
    if (world->store_replica_until_ns > world->now_ns) {
        back.body.reply =
            (struct store_reply){.outcome = OUTCOME_UNSURE, .reason = REASON_STORE_REFUSED};
    } else {
        struct lock_result result;
        model_store_expire(&world->store, world->now_ns);
        struct lock_key before = world->store.key;
        model_store_apply(&world->store, &message->body.request, world->now_ns, &result);
        network_trace_request(world, message, &result);
        checks_applied(world, message, &before, &result);
        past_note(world);
        if (result.released) {
            network_wake_all(world, result.clean);
        }
        if (message->body.request.op == OP_RENEW && result.reply.outcome == OUTCOME_YES) {
            host->renewed_ns = world->now_ns;
        }
        back.body.reply = result.reply;
    }
    if (!message->flag) {
        network_put_back(world, &back);
    }
}
