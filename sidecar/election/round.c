#include "election/mutant.h"
#include "election/round_inside.h"

#include <string.h>

/* A node's own word that its time is over says more than ours: it may come a little later. */
#define GRACE_NS (5 * NS_PER_MS)

void round_init(struct round *round, const struct round_config *config) {
    memset(round, 0, sizeof *round);
    round->config = *config;
}

size_t round_said(const struct round *round) {
    size_t said = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        said += round->nodes[i].said ? 1 : 0;
    }
    return said;
}

size_t round_pending(const struct round *round) {
    size_t pending = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        pending += round->nodes[i].answered ? 0 : 1;
    }
    return pending;
}

static struct quorum *grant_of(struct round *round, const unsigned char *nonce) {
    for (size_t i = 0; i < 2; i++) {
        if (memcmp(round->grants[i].nonce, nonce, NONCE_BYTES) == 0) {
            return &round->grants[i];
        }
    }
    return (struct quorum *)0;
}

struct quorum *round_grant(struct round *round) {
    bool look = round->ask.op == OP_ACQUIRE && !round->ask.take;
    return look ? (struct quorum *)0 : grant_of(round, round->ask.nonce);
}

/* The place of a grant that is over; ENDED_NONCES: it is none of those. */
static unsigned ended_place(const struct round *round, const unsigned char *nonce) {
    for (unsigned i = 0; i < ENDED_NONCES && i < round->ended_count; i++) {
        if (memcmp(round->ended[i], nonce, NONCE_BYTES) == 0) {
            return i;
        }
    }
    return ENDED_NONCES;
}

bool round_is_ended(const struct round *round, const unsigned char *nonce) {
    return ended_place(round, nonce) != ENDED_NONCES;
}

/* A node that may hold a grant which is over gives it back. Its mark is as good as the lease: on a
 * node that proved the one before, which nobody led on, that proof goes on. */
void round_give_back(struct round *round, size_t index, const unsigned char *nonce,
                     const struct quorum_node *node) {
    struct round_return *back = &round->nodes[index].back;
    memset(back, 0, sizeof *back);
    back->wanted = true;
    memcpy(back->nonce, nonce, NONCE_BYTES);
    if (node != (const struct quorum_node *)0 && node->held && node->proved) {
        back->clean = true;
        back->token = node->token;
        memcpy(back->server, node->server, SERVER_ID_MAX);
    }
}

/* The place of the grant that an operation is about; a new one takes the place of what is not held.
 */
static void prepare_grant(struct round *round) {
    struct quorum *grant = grant_of(round, round->ask.nonce);
    if (grant == (struct quorum *)0) {
        grant = &round->grants[round->grants[round->held].live ? 1 - round->held : round->held];
        quorum_init(grant, round->config.node_count, round->config.ttl_ns - round->config.margin_ns,
                    round->ask.nonce);
    }
    grant->live = true;
    for (size_t i = 0; i < round->config.node_count; i++) {
        grant->nodes[i].refused = false; /* what was refused before may have been repaired */
        grant->nodes[i].missing = false;
    }
}

void round_start(struct round *round, const struct round_ask *ask, int64_t now_ns) {
    round->ask = *ask;
    round->serial++;
    round->started_ns = now_ns;
    round->patience_ns = now_ns + ask->timeout_ns / ROUND_PATIENCE_SHARE;
    round->deadline_ns = now_ns + ask->timeout_ns;
    round->wait_ns = ask->wait_ns;
    round->writes = false;
    round->clash = false;
    round->one_server = false;
    round->again_ns = 0;
    round->agains = 0;
    round->glance_ns = NEVER_NS;
    round->settled_ns = NEVER_NS;
    round->warnings = now_ns < round->lists_ns ? (uint32_t)WARNING_NODE_LIST_DIFFERS : 0;
    round->longest_ttl_ns = 0;
    round->done = false;
    memset(round->told, 0, sizeof round->told);
    if (ask->op != OP_ACQUIRE || ask->take) {
        prepare_grant(round);
    }
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct round_node *node = &round->nodes[i];
        node->wanted = true;
        node->answered = false;
        node->said = false;
        memset(&node->reply, 0, sizeof node->reply);
        node->reply.reason = REASON_STORE_UNREACHABLE;
        bool same = memcmp(node->back.nonce, ask->nonce, NONCE_BYTES) == 0;
        node->back.wanted = node->back.wanted && !(same && ask->op == OP_ACQUIRE);
        node->repair = node->repair && ask->op != OP_RELEASE;
    }
}

static void request_return(const struct round *round, const struct round_node *node,
                           struct round_request *request) {
    request->ask.op = OP_RELEASE;
    request->ask.clean = node->back.clean;
    request->ask.token = node->back.token;
    request->ask.timeout_ns = round->ask.timeout_ns;
    memcpy(request->ask.nonce, node->back.nonce, NONCE_BYTES);
    memcpy(request->server, node->back.server, SERVER_ID_MAX);
}

static void request_repair(const struct round *round, struct round_request *request) {
    const struct quorum *grant = &round->grants[round->held];
    request->ask.op = OP_ACQUIRE;
    request->ask.take = true;
    request->ask.seen_token = round->ask.seen_token;
    request->ask.token = grant->token;
    request->ask.wait_ns = round->wait_ns;
    request->ask.timeout_ns = round->ask.timeout_ns;
    memcpy(request->ask.nonce, grant->nonce, NONCE_BYTES);
}

/* Whether a release may leave the clean mark on a node: where the grant counted. Of a grant that
 * this store never let count the candidate knows itself that its wait is over, on all nodes that it
 * was told of at first. */
static bool may_mark(const struct round *round, const struct quorum *grant,
                     const struct quorum_node *node) {
    if (!round->ask.clean || round->ask.token != grant->token) {
        return false;
    }
    bool told = !grant->counted && node->held && node->granted_ns <= grant->first_yes_ns;
    return told || quorum_counts(node, round->wait_ns) || (MUTANT(QUORUM_MARK_ANY) && node->held);
}

/* The operation's own request to a node. */
static void request_own(struct round *round, size_t index, int64_t now_ns,
                        struct round_request *request) {
    const struct quorum *grant = round_grant(round);
    request->ask = round->ask;
    request->ask.wait_ns = round->wait_ns;
    request->ask.timeout_ns = round->deadline_ns - now_ns;
    if (request->ask.timeout_ns < NS_PER_MS) {
        request->ask.timeout_ns = NS_PER_MS;
    }
    if (round->writes) {
        request->ask.op = OP_RENEW;
        request->ask.raise_token = false;
        request->ask.token = grant->token;
    } else if (round->ask.op == OP_RENEW) {
        bool carried = !round->ask.raise_token && !MUTANT(QUORUM_NO_WRITE_BACK);
        request->ask.token = carried ? grant->token : 0;
    } else if (round->ask.op == OP_RELEASE) {
        const struct quorum_node *node = &grant->nodes[index];
        request->ask.clean = may_mark(round, grant, node);
        request->ask.token = node->token;
        memcpy(request->server, node->server, SERVER_ID_MAX);
    } else {
        request->ask.token = 0;
    }
}

bool round_next(struct round *round, int64_t now_ns, struct round_request *request) {
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct round_node *node = &round->nodes[i];
        bool wanted = node->wanted && round->ask.op != OP_NONE;
        if (node->asked.op != OP_NONE || !(node->back.wanted || node->repair || wanted)) {
            continue;
        }
        memset(request, 0, sizeof *request);
        request->node = i;
        node->asked_serial = 0;
        if (node->back.wanted) {
            request_return(round, node, request);
            node->back.wanted = false;
        } else if (node->repair) {
            node->repair = false;
            request_repair(round, request);
        } else {
            request_own(round, i, now_ns, request);
            node->wanted = false;
            node->asked_serial = round->serial;
        }
        node->asked = request->ask;
        return true;
    }
    return false;
}

/* A yes that came after its operation: back with it. Where the grant was refused for good before
 * anybody was told of it, what the node proved stays proved. */
static void take_late(struct round *round, size_t index, const unsigned char *nonce,
                      const struct store_reply *reply, enum prior_doubt doubt) {
    unsigned place = ended_place(round, nonce);
    struct quorum_node node = {.held = true, .proved = doubt == DOUBT_NONE, .token = reply->token};
    memcpy(node.server, reply->server, SERVER_ID_MAX);
    bool passes_on = (place != ENDED_NONCES && round->untold[place]) || MUTANT(QUORUM_LATE_PROVES);
    round_give_back(round, index, nonce, passes_on ? &node : (const struct quorum_node *)0);
}

static void take_acquired(struct round *round, size_t index, const struct round_ask *asked,
                          const struct store_reply *reply, int64_t now_ns) {
    struct round_node *node = &round->nodes[index];
    struct quorum *grant = grant_of(round, asked->nonce);
    bool live = grant != (struct quorum *)0 && grant->live && asked->take;
    if (reply->outcome == OUTCOME_YES) {
        enum prior_doubt doubt =
            proof_judge(&node->proof, reply, now_ns, round->config.margin_ns, round->wait_ns);
        proof_held(&node->proof, reply);
        if (live) {
            quorum_granted(grant, index, reply, doubt, now_ns);
        } else {
            take_late(round, index, asked->nonce, reply, doubt);
        }
    } else if (reply->outcome == OUTCOME_NO) {
        if (live) {
            quorum_refused(grant, index, !reply->held);
        }
        if (reply->held) {
            proof_held(&node->proof, reply);
        }
        if (reply->held && reply->holder_nonce_known &&
            round_is_ended(round, reply->holder_nonce)) {
            round_give_back(round, index, reply->holder_nonce, (const struct quorum_node *)0);
        }
    } else if (asked->take && reply->sent.boot_ns != 0) {
        if (live) {
            grant->nodes[index].maybe = true;
        } else {
            round_give_back(round, index, asked->nonce, (const struct quorum_node *)0);
        }
    }
}

/* Whether what a node was asked last is of the present operation. */
static bool is_present(const struct round *round, const struct round_node *node) {
    return round->ask.op != OP_NONE && node->asked_serial == round->serial;
}

static void take_renewed(struct round *round, size_t index, const struct round_ask *asked,
                         const struct store_reply *reply, int64_t now_ns) {
    struct round_node *node = &round->nodes[index];
    struct quorum *grant = grant_of(round, asked->nonce);
    if (reply->outcome == OUTCOME_UNSURE) {
        if (asked->raise_token && grant != (struct quorum *)0) {
            grant->nodes[index].raise_lost = true;
        }
        return;
    }
    if (reply->outcome == OUTCOME_YES || reply->held) {
        proof_held(&node->proof, reply);
    }
    if (grant == (struct quorum *)0) {
        return;
    }
    if (reply->outcome == OUTCOME_YES) {
        const struct quorum_node *held = &grant->nodes[index];
        uint64_t known = grant->token > held->token ? grant->token : held->token;
        bool raised = asked->raise_token || held->raise_lost;
        if (!raised && known != 0 && reply->token > known) {
            quorum_refused(grant, index, true); /* a late copy of the acquire made it anew */
        }
        quorum_renewed(grant, index, reply, now_ns);
        if (!grant->live) {
            round_give_back(round, index, asked->nonce, (const struct quorum_node *)0);
        }
    } else {
        quorum_refused(grant, index, !reply->held);
        /* Slower than the majority, which ended the renewal without it. */
        bool late = !is_present(round, node) && round->ask.op != OP_RELEASE;
        node->repair = node->repair || (late && !reply->held && grant->live &&
                                        grant == &round->grants[round->held]);
    }
}

/* What a node's answer means for the present operation. */
static void note_answer(struct round *round, size_t index, const struct store_reply *reply,
                        enum round_lists lists, int64_t now_ns) {
    struct round_node *node = &round->nodes[index];
    struct quorum *grant = round_grant(round);
    node->answered = true;
    if (reply->outcome == OUTCOME_UNSURE && node->said) {
        return;
    }
    node->reply = *reply;
    if (reply->outcome == OUTCOME_UNSURE) {
        return;
    }
    node->said = true;
    round->warnings |= reply->warnings;
    round->warnings |= lists != LISTS_SAME ? (uint32_t)WARNING_NODE_LIST_DIFFERS : 0;
    if (lists == LISTS_RUN_OUT) {
        round->lists_ns = now_ns + round->wait_ns;
    }
    round->clash = round->clash || (lists == LISTS_FURTHER_APART && grant != (struct quorum *)0 &&
                                    round->ask.op != OP_RELEASE && !MUTANT(QUORUM_ANY_LIST));
    if (round->writes && grant->nodes[index].held && grant->nodes[index].token < grant->token) {
        node->wanted = true; /* it gave the lock late */
        node->answered = false;
    }
}

void round_answered(struct round *round, size_t index, const struct store_reply *reply,
                    enum round_lists lists, int64_t now_ns) {
    struct round_node *node = &round->nodes[index];
    struct round_ask asked = node->asked;
    bool present = is_present(round, node);
    node->asked.op = OP_NONE;
    if (reply->outcome != OUTCOME_UNSURE) {
        if (reply->longest_ttl_ns > round->longest_ttl_ns) {
            round->longest_ttl_ns = reply->longest_ttl_ns;
        }
        if (reply->longest_ttl_ns > round->wait_ns) {
            round->wait_ns = reply->longest_ttl_ns;
        }
        proof_learn(&node->proof, reply, now_ns, round->config.margin_ns, round->wait_ns);
    }
    if (asked.op == OP_ACQUIRE) {
        take_acquired(round, index, &asked, reply, now_ns);
    } else if (asked.op == OP_RENEW) {
        take_renewed(round, index, &asked, reply, now_ns);
    }
    if (present && !node->answered) {
        note_answer(round, index, reply, lists, now_ns);
    }
    round_judge(round, now_ns);
}

void round_tick(struct round *round, int64_t now_ns) {
    if (round->ask.op == OP_NONE) {
        return;
    }
    if (round->again_ns != 0 && now_ns >= round->again_ns && now_ns < round->patience_ns) {
        round_ask_again(round);
        if (now_ns < round->glance_ns) {
            return;
        }
    }
    if (now_ns >= round->deadline_ns + GRACE_NS) {
        for (size_t i = 0; i < round->config.node_count; i++) {
            round->nodes[i].answered = true;
            round->nodes[i].wanted = round->nodes[i].wanted && round->ask.op == OP_RELEASE;
        }
    }
    round_judge(round, now_ns);
}

int64_t round_wake_ns(const struct round *round, int64_t now_ns) {
    if (round->ask.op == OP_NONE) {
        return NEVER_NS;
    }
    bool patient = now_ns < round->patience_ns;
    int64_t wake_ns = patient ? round->patience_ns : round->deadline_ns + GRACE_NS;
    if (patient && round->again_ns != 0 && round->again_ns < wake_ns) {
        wake_ns = round->again_ns;
    }
    if (round->glance_ns > now_ns && round->glance_ns < wake_ns) {
        wake_ns = round->glance_ns;
    }
    if (round->settled_ns > now_ns && round->settled_ns < wake_ns) {
        wake_ns = round->settled_ns;
    }
    return wake_ns;
}

bool round_take(struct round *round, struct store_reply *reply) {
    if (!round->done) {
        return false;
    }
    round->done = false;
    *reply = round->reply;
    return true;
}

bool round_heard(const struct round *round, size_t node) {
    return round->nodes[node].said;
}
