#include "model_store.h"

#include "election/mutant.h"

#include <stdio.h>
#include <string.h>

int64_t model_store_now_us(const struct model_store *store, int64_t true_ns) {
    return sim_clock_read(&store->clock, true_ns) / NS_PER_US;
}

int64_t model_store_key_end(const struct model_store *store) {
    if (store->key.expires_ms < 0) {
        return INT64_MAX;
    }
    return sim_clock_reach(&store->clock, (store->key.expires_ms + 1) * NS_PER_MS);
}

void model_store_expire(struct model_store *store, int64_t true_ns) {
    int64_t now_ms = model_store_now_us(store, true_ns) / 1000;
    if (store->key.present && store->key.expires_ms >= 0 && now_ms > store->key.expires_ms) {
        store->key.present = false;
    }
}

static bool same_server(struct server_id a, struct server_id b) {
    if (MUTANT(STORE_NO_SERVER_CHECK)) {
        return true;
    }
    if (a.run == 0 || b.run == 0) {
        return false; /* unknown proves nothing */
    }
    return a.run == b.run && (a.repl == b.repl || MUTANT(STORE_NO_REPLID));
}

static bool same_nonce(const unsigned char *a, const unsigned char *b) {
    return memcmp(a, b, NONCE_BYTES) == 0;
}

/* One script at work: the server's clock is read once. */
struct script {
    struct model_store *store;
    const struct lock_request *request;
    struct lock_result *result;
    int64_t now_us;
};

static int64_t end_us(const struct script *script, int64_t ttl_ns) {
    int64_t expires_ms = script->now_us / 1000 + ttl_ns / NS_PER_MS;
    return (expires_ms + 1) * 1000; /* as long as the key is there */
}

static uint64_t mint(struct script *script) {
    const struct lock_record *record = &script->store->record;
    uint64_t token = record->present ? record->token + 1 : 1;
    if (script->request->least != 0 && script->request->least + 1 >= token) {
        return script->request->least; /* made anew: the same grant */
    }
    if (!MUTANT(STORE_TOKEN_NOT_RAISED)) {
        uint64_t clock_ms = (uint64_t)(script->now_us / 1000);
        uint64_t seen = script->request->seen_token + 1;
        token = clock_ms > token ? clock_ms : token;
        token = seen > token ? seen : token;
    }
    script->result->minted = true;
    return token;
}

static void expire_in(struct script *script, int64_t ttl_ns) {
    script->store->key.expires_ms = script->now_us / 1000 + ttl_ns / NS_PER_MS;
}

/* The holder's own word: the key goes on, and the record with it. A record that is not of this
 * grant on this server is written anew, and proves nothing about what came before. */
static void extend(struct script *script) {
    struct lock_key *key = &script->store->key;
    struct lock_record *record = &script->store->record;
    const struct lock_request *request = script->request;
    expire_in(script, request->ttl_ns);
    key->ttl_ns = request->ttl_ns;
    bool ours = record->present && record->complete && same_nonce(record->nonce, key->nonce) &&
                same_server(record->server, script->store->server);
    if (!ours) {
        uint64_t token = record->present && record->token > key->token ? record->token : key->token;
        int64_t ttl_ns = record->present ? record->ttl_ns : 0;
        int64_t wait_ns = request->wait_ns > ttl_ns ? request->wait_ns : ttl_ns;
        ttl_ns = wait_ns; /* whoever comes next knows of W */
        *record = (struct lock_record){.present = true,
                                       .complete = true,
                                       .token = token,
                                       .end_us = end_us(script, wait_ns),
                                       .ttl_ns = ttl_ns,
                                       .server = script->store->server,
                                       .kept = PRIOR_NONE};
        memcpy(record->nonce, key->nonce, NONCE_BYTES);
    }
    if (end_us(script, request->ttl_ns) > record->end_us) {
        record->end_us = end_us(script, request->ttl_ns);
    }
    if (request->ttl_ns > record->ttl_ns) {
        record->ttl_ns = request->ttl_ns;
    }
}

/* How the lease before this one ended, and why no better is known. */
static enum prior judge(const struct script *script, enum prior_doubt *doubt) {
    const struct lock_record *record = &script->store->record;
    if (!record->present || !record->complete) {
        *doubt = DOUBT_NO_RECORD;
        return PRIOR_NONE;
    }
    if (!same_server(record->server, script->store->server)) {
        *doubt = script->store->server.run == 0 ? DOUBT_UNKNOWN_SERVER : DOUBT_OTHER_SERVER;
        return PRIOR_NONE;
    }
    if (record->token < script->request->seen_token && !MUTANT(STORE_NO_TOKEN_CHECK)) {
        *doubt = DOUBT_TOKEN_BEHIND;
        return PRIOR_NONE;
    }
    *doubt = DOUBT_NONE;
    return record->clean ? PRIOR_CLEAN : PRIOR_END;
}

/* A retry that finds its own grant: the answer is the one that the grant was given. */
static void acquire_again(struct script *script) {
    struct model_store *store = script->store;
    struct lock_record *record = &store->record;
    struct store_reply *reply = &script->result->reply;
    reply->outcome = OUTCOME_YES;
    reply->token = store->key.token;
    bool ours = record->present && record->complete &&
                same_nonce(record->nonce, store->key.nonce) &&
                same_server(record->server, store->server);
    reply->prior = ours ? record->kept : PRIOR_NONE;
    if (ours && MUTANT(STORE_NO_KEPT_ANSWER)) {
        /* "The last lease is mine, and I know that I do not lead": true, and beside the point. */
        reply->prior = PRIOR_CLEAN;
    }
    if (reply->prior == PRIOR_END) {
        reply->prior = record->kept = PRIOR_NONE;
    }
    reply->doubt = reply->prior == PRIOR_NONE ? DOUBT_NO_RECORD : DOUBT_NONE;
    extend(script);
}

static void acquire_new(struct script *script) {
    struct model_store *store = script->store;
    struct lock_record *record = &store->record;
    struct store_reply *reply = &script->result->reply;
    reply->prior = judge(script, &reply->doubt);
    reply->prior_end_us = reply->prior == PRIOR_END ? record->end_us : 0;
    reply->outcome = OUTCOME_YES;
    reply->token = mint(script);
    int64_t ttl_ns = script->request->ttl_ns;
    int64_t end_after_ns = ttl_ns;
    if (reply->prior != PRIOR_CLEAN) {
        ttl_ns = record->present && record->ttl_ns > ttl_ns ? record->ttl_ns : ttl_ns;
        /* Of the leases before it too, should this grant never come to lead. */
        end_after_ns = script->request->wait_ns > ttl_ns ? script->request->wait_ns : ttl_ns;
        ttl_ns = end_after_ns; /* whoever comes next knows of W */
    }
    if (MUTANT(STORE_END_SHORT)) {
        end_after_ns = script->request->ttl_ns;
    }
    *record = (struct lock_record){.present = true,
                                   .complete = true,
                                   .token = reply->token,
                                   .end_us = end_us(script, end_after_ns),
                                   .ttl_ns = ttl_ns,
                                   .server = store->server,
                                   .kept = reply->prior};
    memcpy(record->nonce, script->request->nonce, NONCE_BYTES);
    store->key = (struct lock_key){.present = true,
                                   .host = script->request->host,
                                   .token = reply->token,
                                   .ttl_ns = script->request->ttl_ns};
    memcpy(store->key.nonce, script->request->nonce, NONCE_BYTES);
    expire_in(script, script->request->ttl_ns);
    script->result->granted = true;
}

static void tell_holder(struct script *script) {
    const struct lock_key *key = &script->store->key;
    struct store_reply *reply = &script->result->reply;
    reply->held = key->present;
    reply->expires_in_ns = -1;
    if (!key->present) {
        return;
    }
    reply->holder_nonce_known = true;
    memcpy(reply->holder_nonce, key->nonce, NONCE_BYTES);
    if (key->expires_ms >= 0) {
        reply->expires_in_ns = (key->expires_ms - script->now_us / 1000) * NS_PER_MS;
    }
    snprintf(reply->holder, sizeof reply->holder, "host-%d", key->host);
}

/* A follower bounds a key that would live longer than its own value says. */
static void cap_expiry(struct script *script) {
    struct lock_key *key = &script->store->key;
    int64_t latest_ms = script->now_us / 1000 + key->ttl_ns / NS_PER_MS;
    if (key->expires_ms < 0 || key->expires_ms > latest_ms) {
        key->expires_ms = latest_ms;
    }
}

static void acquire(struct script *script) {
    const struct lock_key *key = &script->store->key;
    struct store_reply *reply = &script->result->reply;
    if (key->present && same_nonce(key->nonce, script->request->nonce)) {
        acquire_again(script);
        return;
    }
    if (!key->present && script->request->take && script->result->apart < 2) {
        acquire_new(script);
        script->store->record.nodes = script->request->nodes;
        return;
    }
    if (key->present) {
        cap_expiry(script);
    }
    reply->outcome = OUTCOME_NO;
    reply->reason = REASON_HELD_BY_OTHER;
    reply->token = script->store->record.present ? script->store->record.token : 0;
    tell_holder(script);
}

static void renew(struct script *script) {
    struct lock_key *key = &script->store->key;
    struct store_reply *reply = &script->result->reply;
    if (!key->present && MUTANT(STORE_RENEW_CREATES)) {
        key->present = true;
        key->host = script->request->host;
        key->token = script->store->record.token;
        memcpy(key->nonce, script->request->nonce, NONCE_BYTES);
    }
    if (!key->present || !same_nonce(key->nonce, script->request->nonce)) {
        reply->outcome = OUTCOME_NO;
        reply->reason = REASON_RENEWAL_REFUSED;
        reply->token = script->store->record.present ? script->store->record.token : 0;
        tell_holder(script);
        return;
    }
    uint64_t raised = script->request->raise_token ? mint(script) : 0;
    extend(script);
    script->store->record.nodes = script->request->nodes;
    if (script->request->raise_token) {
        key->token = script->store->record.token = raised;
    } else if (script->request->least > key->token) {
        key->token = script->request->least;
    }
    if (key->token > script->store->record.token) {
        script->store->record.token = key->token;
    }
    reply->outcome = OUTCOME_YES;
    reply->token = key->token;
}

void model_store_name_server(const struct model_store *store, char text[SERVER_ID_MAX]) {
    memset(text, 0, SERVER_ID_MAX);
    if (store->server.run != 0) {
        snprintf(text, SERVER_ID_MAX, "run%u:repl%u", store->server.run, store->server.repl);
    }
}

static void release(struct script *script) {
    struct lock_key *key = &script->store->key;
    struct lock_record *record = &script->store->record;
    struct store_reply *reply = &script->result->reply;
    if (!key->present ||
        (!same_nonce(key->nonce, script->request->nonce) && !MUTANT(STORE_RELEASE_ANY))) {
        reply->outcome = OUTCOME_NO;
        reply->reason = REASON_RENEWAL_REFUSED;
        reply->token = record->present ? record->token : 0;
        tell_holder(script);
        return;
    }
    char server[SERVER_ID_MAX];
    model_store_name_server(script->store, server);
    bool match = strcmp(script->request->server, server) == 0 && record->present &&
                 record->complete && record->token == script->request->token &&
                 same_nonce(record->nonce, script->request->nonce) &&
                 same_server(record->server, script->store->server);
    key->present = false;
    record->clean = script->request->clean && match;
    if (record->clean || MUTANT(STORE_RELEASE_ENDS)) {
        record->end_us = script->now_us; /* else it stays: an older lease may run as long */
    }
    script->result->released = true;
    script->result->clean = record->clean;
    reply->outcome = OUTCOME_YES;
    reply->token = record->present ? record->token : 0;
}

void model_store_apply(struct model_store *store, const struct lock_request *request,
                       int64_t true_ns, struct lock_result *result) {
    *result = (struct lock_result){.granted = false};
    model_store_expire(store, true_ns);
    struct script script = {store, request, result, model_store_now_us(store, true_ns)};
    struct store_reply *reply = &result->reply;
    result->recorded_token = store->record.present ? store->record.token : 0;
    reply->longest_ttl_ns = store->record.present ? store->record.ttl_ns : 0;
    reply->server_now_us = script.now_us;
    model_store_name_server(store, reply->server);
    bool counts =
        store->key.present || (store->record.present && script.now_us < store->record.end_us);
    if (counts && request->nodes != 0 && store->record.nodes != 0) {
        result->apart = __builtin_popcount(request->nodes ^ store->record.nodes);
    }
    switch (request->op) {
    case OP_ACQUIRE:
        acquire(&script);
        break;
    case OP_RENEW:
        renew(&script);
        break;
    case OP_RELEASE:
        release(&script);
        break;
    case OP_NONE:
        break;
    }
}
