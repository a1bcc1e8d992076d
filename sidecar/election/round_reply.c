#include "election/round_inside.h"

#include <string.h>

/* The one answer to an operation, made of those of the nodes. */

#define COLLISION_MOST_NS (50 * NS_PER_MS)
#define COLLISIONS_MOST 3 /* in a row */

static void begin(struct round *round, enum outcome outcome, enum election_reason reason) {
    memset(&round->reply, 0, sizeof round->reply);
    round->reply.outcome = outcome;
    round->reply.reason = reason;
    round->reply.expires_in_ns = -1;
    round->reply.longest_ttl_ns = round->longest_ttl_ns;
    round->reply.warnings = round->warnings;
    round->blamed = round->config.node_count;
    if (round->config.node_count % 2 == 0) {
        round->reply.warnings |= WARNING_EVEN_NODES;
    }
}

/* The earliest send among the nodes that said something. */
static void set_sent(struct round *round) {
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        bool earlier =
            round->reply.sent.boot_ns == 0 || node->reply.sent.boot_ns < round->reply.sent.boot_ns;
        if (node->said && node->reply.sent.boot_ns != 0 && earlier) {
            round->reply.sent = node->reply.sent;
        }
    }
}

/* Whether a majority of nodes could prove how a lease that runs out now has ended. */
static bool is_vouched(const struct round *round) {
    size_t vouched = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct vouch *vouch = &round->nodes[i].proof.vouch;
        vouched += round->nodes[i].said && vouch_holds(vouch, vouch->newest_ns,
                                                       round->config.margin_ns, round->wait_ns)
                       ? 1
                       : 0;
    }
    return vouched > round->config.node_count / 2;
}

void round_say_yes(struct round *round, int64_t now_ns, bool counting) {
    struct quorum *grant = round_grant(round);
    struct store_reply *reply = &round->reply;
    begin(round, OUTCOME_YES, REASON_STARTING);
    if (round->ask.op == OP_RELEASE) {
        set_sent(round);
        return;
    }
    struct quorum_rule rule = {.counting = counting,
                               .wait_ns = round->wait_ns,
                               .open_ns = now_ns,
                               .sent_ns = round->writes ? round->started_ns : 0,
                               .token = round->writes ? grant->token : 0};
    (void)quorum_sent(grant, &rule, &reply->sent);
    if (grant->token == 0) { /* nothing is known of it but that the nodes say yes */
        grant->token = quorum_token(grant, &rule);
    }
    reply->token = grant->token;
    reply->vouched = is_vouched(round);
    grant->first_yes_ns = grant->first_yes_ns == 0 ? now_ns : grant->first_yes_ns;
    grant->told_sent_ns = reply->sent.boot_ns;
    grant->counted = grant->counted || counting;
    reply->prior = counting ? PRIOR_CLEAN : PRIOR_NONE;
    if (counting) {
        return;
    }
    reply->doubt = quorum_doubt(grant);
    reply->wait_until_ns = quorum_counts_from(grant, round->wait_ns);
    if (reply->wait_until_ns < now_ns) {
        reply->wait_until_ns = now_ns; /* only what is sent from now on will tell */
    }
}

static size_t holders_like(const struct round *round, size_t index) {
    size_t same = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        same += node->said && node->reply.outcome == OUTCOME_NO && node->reply.held &&
                        node->reply.holder_nonce_known &&
                        memcmp(node->reply.holder_nonce, round->nodes[index].reply.holder_nonce,
                               NONCE_BYTES) == 0
                    ? 1
                    : 0;
    }
    return same;
}

/* Who holds the lock: whoever holds most nodes. */
static void set_holder(struct round *round) {
    struct store_reply *reply = &round->reply;
    size_t most = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct store_reply *said = &round->nodes[i].reply;
        if (!round->nodes[i].said || said->outcome != OUTCOME_NO || !said->held) {
            continue;
        }
        size_t same = said->holder_nonce_known ? holders_like(round, i) : 0;
        if (same < most || (most > 0 && same == most)) {
            continue;
        }
        most = same;
        reply->held = true;
        reply->holder_nonce_known = said->holder_nonce_known;
        memcpy(reply->holder_nonce, said->holder_nonce, NONCE_BYTES);
        memcpy(reply->holder, said->holder, sizeof reply->holder);
        if (reply->reason != REASON_STORE_REFUSED) {
            reply->reason = said->reason;
        }
    }
    bool looks = round->ask.op == OP_ACQUIRE && !round->ask.take;
    if (most > 0 && most <= round->config.node_count / 2) {
        /* Nobody has a majority: there is no holder to be shown. */
        reply->holder_nonce_known = false;
        memset(reply->holder, 0, sizeof reply->holder);
        reply->held = !looks;
    }
}

static void insert(int64_t *sorted, size_t count, int64_t value) {
    size_t at = count;
    for (; at > 0 && sorted[at - 1] > value; at--) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = value;
}

/* When a majority of the nodes will be free, by what they say of their keys. */
static int64_t free_in_ns(const struct round *round) {
    int64_t free_ns[QUORUM_NODES_MAX];
    size_t count = round->config.node_count;
    for (size_t i = 0; i < count; i++) {
        const struct round_node *node = &round->nodes[i];
        int64_t in_ns = NEVER_NS;
        if (node->said && node->reply.outcome == OUTCOME_NO && node->reply.held) {
            in_ns = node->reply.expires_in_ns >= 0 ? node->reply.expires_in_ns : NEVER_NS;
        } else if (node->said) {
            in_ns = 0; /* free, or ours and on its way back */
        }
        insert(free_ns, i, in_ns);
    }
    return free_ns[count / 2];
}

/* The token that a majority of nodes remembers: one that was published stands on a majority. Others
 * are mostly of attempts that failed, and must not make the records of nodes without them look
 * old. */
static uint64_t common_token(const struct round *round) {
    size_t count = round->config.node_count;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < count; j++) {
            same += round->nodes[i].said && round->nodes[j].said &&
                            round->nodes[i].reply.token == round->nodes[j].reply.token
                        ? 1
                        : 0;
        }
        if (same > count / 2) {
            return round->nodes[i].reply.token;
        }
    }
    return 0;
}

/* Candidates that took each other's majority away must not meet again at once. */
static int64_t collision_ns(const struct round *round) {
    uint64_t number = 0;
    int64_t most_ns = round->config.margin_ns / 4;
    memcpy(&number, round->ask.nonce, sizeof number);
    if (most_ns > COLLISION_MOST_NS) {
        most_ns = COLLISION_MOST_NS;
    }
    return most_ns > 0 ? (int64_t)(number % (uint64_t)most_ns) : 0;
}

void round_say_no(struct round *round, int64_t now_ns, enum election_reason reason) {
    struct store_reply *reply = &round->reply;
    (void)now_ns;
    begin(round, OUTCOME_NO, reason);
    set_sent(round);
    set_holder(round);
    reply->token = common_token(round);
    reply->vouched = is_vouched(round);
    if (round->ask.op == OP_ACQUIRE && reason == REASON_STORE_REFUSED) {
        reply->held = true; /* whatever the keys say: somebody has to change the settings */
    } else if (round->ask.op == OP_ACQUIRE && reply->held) {
        int64_t in_ns = free_in_ns(round);
        reply->expires_in_ns = in_ns == NEVER_NS ? -1 : in_ns;
        /* In a collision the others give back what they have, soon; if not, it was none. */
        bool collided =
            round->ask.take && !reply->holder_nonce_known && reply->reason == REASON_HELD_BY_OTHER;
        round->collisions = collided ? round->collisions + 1 : 0;
        if (in_ns == 0 || (collided && round->collisions <= COLLISIONS_MOST)) {
            reply->expires_in_ns = collision_ns(round);
        }
    }
    if (round->ask.op == OP_ACQUIRE && round->ask.take && !reply->held) {
        reply->held = true; /* refused by everybody's absence of mind, or in a collision */
        reply->reason = reason;
        reply->expires_in_ns = collision_ns(round);
    }
}

void round_say_unsure(struct round *round) {
    size_t refused = 0;
    size_t silent = 0;
    begin(round, OUTCOME_UNSURE, REASON_STORE_UNREACHABLE);
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        if (!node->said && node->answered && node->reply.outcome == OUTCOME_UNSURE) {
            bool by_word = node->reply.reason == REASON_STORE_REFUSED;
            refused += by_word ? 1 : 0;
            silent += by_word ? 0 : 1;
            round->blamed = i;
        }
    }
    if (refused > silent || (refused == 0 && silent == 0)) {
        round->reply.reason = REASON_STORE_REFUSED;
    }
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        bool likes = node->answered && node->reply.outcome == OUTCOME_UNSURE && !node->said &&
                     node->reply.reason == round->reply.reason;
        round->blamed = likes ? i : round->blamed;
    }
}
