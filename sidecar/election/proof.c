#include "election/proof.h"

#include "election/mutant.h"

#include <string.h>

void proof_learn(struct proof *proof, const struct store_reply *reply, int64_t arrived_ns,
                 int64_t margin_ns, int64_t wait_ns) {
    if (reply->server_now_us <= 0) {
        return;
    }
    struct vouch_sample sample = {.server = reply->server,
                                  .server_now_us = reply->server_now_us,
                                  .sent_ns = reply->sent.boot_ns,
                                  .arrived_ns = arrived_ns};
    vouch_add(&proof->vouch, &sample, margin_ns, wait_ns);
}

void proof_held(struct proof *proof, const struct store_reply *reply) {
    if (reply->server_now_us <= 0) {
        return;
    }
    if (!server_is_same(proof->held_server, reply->server)) {
        memcpy(proof->held_server, reply->server, SERVER_ID_MAX);
        proof->held_seen_us = 0; /* another server's clock */
    }
    if (reply->server_now_us > proof->held_seen_us) {
        proof->held_seen_us = reply->server_now_us;
    }
}

enum prior_doubt proof_judge(const struct proof *proof, const struct store_reply *reply,
                             int64_t arrived_ns, int64_t margin_ns, int64_t wait_ns) {
    if (MUTANT(NO_DELAY) || reply->prior == PRIOR_CLEAN) {
        return DOUBT_NONE;
    }
    if (reply->prior == PRIOR_NONE) {
        return reply->doubt == DOUBT_NONE ? DOUBT_NO_RECORD : reply->doubt;
    }
    if (MUTANT(END_ALWAYS_TRUSTED)) {
        return DOUBT_NONE;
    }
    if (reply->prior_end_us >= reply->server_now_us) {
        return DOUBT_END_AHEAD;
    }
    bool seen_later = server_is_same(proof->held_server, reply->server) &&
                      reply->prior_end_us < proof->held_seen_us;
    if (seen_later && !MUTANT(NO_HELD_SEEN)) {
        return DOUBT_TOKEN_BEHIND;
    }
    bool vouches = vouch_holds(&proof->vouch, arrived_ns, margin_ns, wait_ns);
    return vouches || MUTANT(NO_VOUCH) ? DOUBT_NONE : DOUBT_CLOCK;
}
