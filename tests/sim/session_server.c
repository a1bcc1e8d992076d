#include "session.h"

#include "election/mutant.h"
#include "network.h"
#include "past.h"

#include <stdio.h>
#include <string.h>

static struct sim_session *find(struct world *world, unsigned session) {
    struct sim_session *slot = &world->sessions[session % SESSIONS_MOST];
    return session != 0 && slot->id == session ? slot : NULL;
}

static int64_t server_ms(const struct world *world) {
    return model_store_now_us(&world->store, world->now_ns) / 1000;
}

/* The server ends a session that says nothing for longer than a lease: idle_session_timeout. */
static void heard_of(struct world *world, struct sim_session *session, int64_t ttl_ns,
                     int64_t margin_ns) {
    session->expires_ms = -1;
    if (world->plan.kind == KIND_SESSION) {
        session->expires_ms = server_ms(world) + (ttl_ns + margin_ns) / NS_PER_MS;
    }
    if (world->store.key.present && world->store.key.session == session->id) {
        world->store.key.expires_ms = session->expires_ms;
    }
}

unsigned session_open(struct world *world, const struct host *host) {
    unsigned id = ++world->session_count;
    struct sim_session *session = &world->sessions[id % SESSIONS_MOST];
    *session = (struct sim_session){.id = id};
    heard_of(world, session, host->config.ttl_ns, host->config.margin_ns);
    return id;
}

bool session_is_open(const struct world *world, unsigned session) {
    const struct sim_session *slot = &world->sessions[session % SESSIONS_MOST];
    return session != 0 && slot->id == session &&
           (slot->expires_ms < 0 || slot->expires_ms >= server_ms(world));
}

void session_end(struct world *world, unsigned session) {
    struct sim_session *slot = find(world, session);
    if (slot) {
        slot->id = 0;
    }
    if (world->store.key.present && world->store.key.session == session) {
        world_trace(world, "  store: the lock goes with its connection");
        world->store.key.present = false;
        world->store_disturbed_ns = world->now_ns;
        past_note(world);
    }
}

void session_end_all(struct world *world) {
    memset(world->sessions, 0, sizeof world->sessions);
    world->store.key.present = false;
}

static bool same_server(struct server_id a, struct server_id b) {
    return (a.run == b.run && a.repl == b.repl) || MUTANT(SESSION_ANY_SERVER);
}

/* One message at work. */
struct work {
    struct world *world;
    const struct lock_request *request;
    struct lock_result *result;
    struct store_reply *reply;
    struct lock_key *key;
    struct lock_record *record;
    bool own;  /* the lock is this connection's */
    bool ours; /* the row is this grant's */
};

static uint64_t mint(struct work *work) {
    uint64_t token = work->record->present ? work->record->token + 1 : 1;
    if (!MUTANT(STORE_TOKEN_NOT_RAISED)) {
        uint64_t clock_ms = (uint64_t)server_ms(work->world);
        uint64_t seen = work->request->seen_token + 1;
        token = clock_ms > token ? clock_ms : token;
        token = seen > token ? seen : token;
    }
    work->result->minted = true;
    work->reply->token = token;
    return token;
}

static void refuse(struct work *work, enum election_reason reason) {
    struct store_reply *reply = work->reply;
    reply->outcome = OUTCOME_NO;
    reply->reason = reason;
    reply->token = work->record->present ? work->record->token : 0;
    reply->held = work->key->present;
    if (work->key->present) {
        reply->holder_nonce_known =
            work->own || (work->record->present &&
                          memcmp(work->record->nonce, work->key->nonce, NONCE_BYTES) == 0);
        memcpy(reply->holder_nonce, work->key->nonce, NONCE_BYTES);
        snprintf(reply->holder, sizeof reply->holder, "host-%d", work->key->host);
    }
}

static void try_lock(struct work *work) {
    const struct lock_request *request = work->request;
    if (work->key->present && !work->own) {
        refuse(work, REASON_HELD_BY_OTHER);
        return;
    }
    *work->key = (struct lock_key){.present = true,
                                   .host = request->host,
                                   .session = request->session,
                                   .ttl_ns = request->ttl_ns,
                                   .expires_ms = -1};
    memcpy(work->key->nonce, request->nonce, NONCE_BYTES);
    work->reply->outcome = OUTCOME_YES;
    work->own = true;
}

/* How the grant before ended, as the statement that mints the token finds it. */
static enum prior_doubt judge(const struct work *work) {
    const struct lock_record *record = work->record;
    if (!record->present || !record->complete) {
        return DOUBT_NO_RECORD;
    }
    if (record->token < work->request->seen_token) {
        return DOUBT_TOKEN_BEHIND;
    }
    if (!same_server(record->server, work->world->store.server)) {
        return DOUBT_OTHER_SERVER;
    }
    if (work->ours) {
        return record->kept == PRIOR_CLEAN ? DOUBT_NONE : DOUBT_UNCLEAN;
    }
    return record->clean || MUTANT(SESSION_NO_GRACE) ? DOUBT_NONE : DOUBT_UNCLEAN;
}

static void mint_row(struct work *work) {
    struct lock_record *record = work->record;
    const struct lock_request *request = work->request;
    struct store_reply *reply = work->reply;
    if (!work->own) {
        reply->outcome = OUTCOME_UNSURE;
        reply->reason = REASON_STORE_REFUSED;
        return;
    }
    bool fresh = !work->ours;
    reply->doubt = judge(work);
    reply->prior = reply->doubt == DOUBT_NONE ? PRIOR_CLEAN : PRIOR_NONE;
    int64_t longest_ns = request->ttl_ns;
    if (record->present && (reply->prior != PRIOR_CLEAN || !fresh) && record->ttl_ns > longest_ns) {
        longest_ns = record->ttl_ns;
    }
    bool clean = MUTANT(SESSION_MARK_STAYS) && record->present && record->clean;
    *record = (struct lock_record){.present = true,
                                   .complete = true,
                                   .clean = clean,
                                   .token = mint(work),
                                   .ttl_ns = longest_ns,
                                   .server = work->world->store.server,
                                   .kept = reply->prior};
    memcpy(record->nonce, request->nonce, NONCE_BYTES);
    reply->outcome = OUTCOME_YES;
    reply->longest_ttl_ns = longest_ns;
    work->result->granted = fresh;
}

static void raise_row(struct work *work) {
    if (!work->ours) {
        refuse(work, REASON_RENEWAL_REFUSED);
    } else if (!work->own) {
        work->reply->outcome = OUTCOME_UNSURE;
        work->reply->reason = REASON_STORE_REFUSED;
    } else {
        work->reply->outcome = OUTCOME_YES;
        work->record->token = mint(work);
    }
}

/* Does not need the lock: the mark is true of a grant whose connection is gone, too. */
static void mark_row(struct work *work) {
    char server[SERVER_ID_MAX];
    model_store_name_server(&work->world->store, server);
    const struct lock_request *request = work->request;
    bool match = work->ours && work->record->token == request->token &&
                 (strcmp(request->server, server) == 0 || MUTANT(SESSION_ANY_SERVER)) &&
                 same_server(work->record->server, work->world->store.server);
    if (match || MUTANT(SESSION_MARK_ANY)) {
        work->record->clean = true;
    }
    work->result->clean = match;
    work->reply->outcome = OUTCOME_YES;
}

static void probe(struct work *work) {
    if (!work->own) {
        refuse(work, REASON_RENEWAL_REFUSED);
    } else if (work->request->op == OP_ACQUIRE && work->request->token == 0) {
        work->reply->outcome = OUTCOME_YES; /* no token yet: the row says nothing of it */
    } else if (!work->ours || work->record->token != work->request->token) {
        /* Another's token ends the grant. */
        refuse(work, REASON_RENEWAL_REFUSED);
    } else {
        work->reply->outcome = OUTCOME_YES;
        work->reply->token = work->record->token;
    }
}

static void unlock(struct work *work) {
    if (work->own) {
        work->key->present = false;
        work->result->released = true;
        work->result->clean = work->record->present && work->record->clean;
        work->reply->outcome = OUTCOME_YES;
    } else {
        refuse(work, REASON_RENEWAL_REFUSED);
    }
}

bool session_apply(struct world *world, const struct lock_request *request,
                   struct lock_result *result) {
    *result = (struct lock_result){.granted = false};
    struct lock_key *key = &world->store.key;
    struct lock_record *record = &world->store.record;
    bool of_row = session_is_of_row(request->stage);
    model_store_expire(&world->store, world->now_ns);
    if (!of_row && !session_is_open(world, request->session)) {
        session_end(world, request->session);
        return false;
    }
    struct work work = {.world = world,
                        .request = request,
                        .result = result,
                        .reply = &result->reply,
                        .key = key,
                        .record = record,
                        .own = key->present && key->session == request->session &&
                               request->session != 0,
                        .ours = record->present && record->complete &&
                                memcmp(record->nonce, request->nonce, NONCE_BYTES) == 0};
    result->recorded_token = record->present ? record->token : 0;
    result->reply.expires_in_ns = -1;
    result->reply.longest_ttl_ns = record->present ? record->ttl_ns : 0;
    model_store_name_server(&world->store, result->reply.server);
    switch ((enum session_stage)request->stage) {
    case STAGE_TRY:
        try_lock(&work);
        break;
    case STAGE_PROBE:
        probe(&work);
        break;
    case STAGE_MINT:
        mint_row(&work);
        break;
    case STAGE_RAISE:
        raise_row(&work);
        break;
    case STAGE_MARK:
        mark_row(&work);
        break;
    case STAGE_UNLOCK:
    case STAGE_GIVE_UP:
        unlock(&work);
        break;
    case STAGE_LOOK:
    case STAGE_OVER:
        refuse(&work, request->op == OP_ACQUIRE ? REASON_HELD_BY_OTHER : REASON_RENEWAL_REFUSED);
        break;
    }
    if (!of_row) {
        heard_of(world, find(world, request->session), request->ttl_ns,
                 world->hosts[request->host].config.margin_ns);
    }
    return true;
}
