#include "election/mutant.h"
#include "election/round_inside.h"

#include <string.h>

/* How much of its time an operation waits for slow nodes once it could go on without them. */
#define PATIENCE_SHARE 3
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

static bool is_ended(const struct round *round, const unsigned char *nonce) {
    for (unsigned i = 0; i < ENDED_NONCES && i < round->ended_count; i++) {
        if (memcmp(round->ended[i], nonce, NONCE_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static void end_nonce(struct round *round, const unsigned char *nonce) {
    if (!is_ended(round, nonce)) {
        memcpy(round->ended[round->ended_count % ENDED_NONCES], nonce, NONCE_BYTES);
        round->ended_count++;
    }
}

/* A node that may hold a grant which is over gives it back. Its mark is as good as the lease: on a
 * node that proved the one before, which nobody led on, that proof goes on. */
static void give_back(struct round *round, size_t index, const unsigned char *nonce,
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

/* The operation is over. */
static void finish(struct round *round) {
    struct quorum *held = &round->grants[round->held];
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct round_node *node = &round->nodes[i];
        if (round->ask.op == OP_RELEASE && node->wanted) {
            give_back(round, i, round->ask.nonce, (const struct quorum_node *)0);
        }
        node->wanted = false;
        if (round->ask.op == OP_RENEW && held->live && held->nodes[i].missing &&
            round->reply.outcome != OUTCOME_NO) {
            node->repair = true;
        } else if (!held->live) {
            node->repair = false;
        }
    }
    round->ask.op = OP_NONE;
    round->done = true;
}

/* A failed acquire leaves nothing behind: every node that gave the lock, or that may have. */
static void fail_acquire(struct round *round, int64_t now_ns, bool refused) {
    struct quorum *grant = round_grant(round);
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct quorum_node *node = &grant->nodes[i];
        if (node->held || node->maybe) {
            give_back(round, i, grant->nonce, node);
        }
        node->held = false;
        node->maybe = false;
    }
    grant->live = false;
    round->failures++;
    /* Half of an even number is no majority, but its no is enough. */
    if (refused || quorum_is_over(grant) || round_said(round) >= quorum_majority(grant)) {
        end_nonce(round, grant->nonce);
        round_say_no(round, now_ns, round->clash ? REASON_STORE_REFUSED : REASON_HELD_BY_OTHER);
    } else {
        round_say_unsure(round);
    }
    finish(round);
}

static void succeed(struct round *round, int64_t now_ns, bool counting) {
    struct quorum *grant = round_grant(round);
    size_t index = (size_t)(grant - round->grants);
    round_say_yes(round, now_ns, counting);
    if (index != round->held && (round->ask.op == OP_ACQUIRE || !round->grants[round->held].live)) {
        if (round->grants[round->held].live) {
            end_nonce(round, round->grants[round->held].nonce);
        }
        round->grants[round->held].live = false;
        round->held = index;
    }
    round->failures = 0;
    finish(round);
}

/* The end of an operation on a grant that stays as it is. */
static void doubt(struct round *round) {
    round_say_unsure(round);
    finish(round);
}

static void lose(struct round *round, int64_t now_ns) {
    struct quorum *grant = round_grant(round);
    round_say_no(round, now_ns, round->clash ? REASON_STORE_REFUSED : REASON_RENEWAL_REFUSED);
    if (grant->live) {
        for (size_t i = 0; i < round->config.node_count; i++) {
            if (grant->nodes[i].held || grant->nodes[i].maybe) {
                give_back(round, i, grant->nonce, (const struct quorum_node *)0);
            }
        }
        end_nonce(round, grant->nonce);
        grant->live = false;
    }
    finish(round);
}

/* The greatest token: of those who gave the lock, above what anybody else remembers. */
static uint64_t token_to_write(const struct round *round, const struct quorum *grant,
                               const struct quorum_rule *rule) {
    uint64_t token = quorum_token(grant, rule);
    if (token <= round->ask.seen_token && !MUTANT(SEEN_TOKEN_FORGOTTEN)) {
        token = round->ask.seen_token + 1;
    }
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        if (node->said && node->reply.outcome == OUTCOME_NO && node->reply.token >= token) {
            token = node->reply.token + 1;
        }
    }
    return token;
}

static void evaluate_writing(struct round *round, int64_t now_ns);

/* A majority has it: its greatest token goes to all of them. */
static void start_writing(struct round *round, int64_t now_ns, const struct quorum_rule *rule) {
    struct quorum *grant = round_grant(round);
    uint64_t token = token_to_write(round, grant, rule);
    if (token > TOKEN_MAX) {
        if (round->ask.op == OP_ACQUIRE) {
            fail_acquire(round, now_ns, false);
        } else {
            doubt(round);
        }
        return;
    }
    grant->token = token;
    round->writes = true;
    round->patience_ns = now_ns + round->ask.timeout_ns / PATIENCE_SHARE;
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct quorum_node *node = &grant->nodes[i];
        if (node->held && node->token < token && round->nodes[i].answered) {
            if (MUTANT(QUORUM_NO_WRITE_BACK)) {
                node->token = token;
                continue;
            }
            round->nodes[i].wanted = true;
            round->nodes[i].answered = false;
        }
    }
    evaluate_writing(round, now_ns);
}

static void evaluate_writing(struct round *round, int64_t now_ns) {
    struct quorum *grant = round_grant(round);
    struct quorum_rule written = {.wait_ns = round->wait_ns,
                                  .open_ns = now_ns,
                                  .sent_ns = round->started_ns,
                                  .token = grant->token};
    struct quorum_rule counting = written;
    counting.counting = true;
    size_t pending = round_pending(round);
    bool late = now_ns >= round->patience_ns || pending == 0;
    if (quorum_votes(grant, &counting) >= quorum_majority(grant)) {
        succeed(round, now_ns, true);
    } else if (quorum_votes(grant, &written) >= quorum_majority(grant) && late) {
        succeed(round, now_ns, false);
    } else if (quorum_is_over(grant) && round->ask.op == OP_RENEW) {
        lose(round, now_ns);
    } else if (pending == 0 && round->ask.op == OP_RENEW) {
        doubt(round);
    } else if (pending == 0) {
        fail_acquire(round, now_ns, false);
    }
}

static void evaluate_acquire(struct round *round, int64_t now_ns) {
    struct quorum *grant = round_grant(round);
    struct quorum_rule held = {
        .wait_ns = round->wait_ns, .open_ns = now_ns, .sent_ns = round->started_ns};
    struct quorum_rule counting = held;
    counting.counting = true;
    size_t majority = quorum_majority(grant);
    size_t has = quorum_votes(grant, &held);
    size_t pending = round_pending(round);
    bool late = now_ns >= round->patience_ns || pending == 0;
    if (round->clash) {
        fail_acquire(round, now_ns, true);
    } else if (quorum_votes(grant, &counting) >= majority || (has >= majority && late)) {
        start_writing(round, now_ns, &held);
    } else if (has + pending < majority || pending == 0 ||
               (late && round_said(round) >= majority)) {
        fail_acquire(round, now_ns, false);
    }
}

static void evaluate_renew(struct round *round, int64_t now_ns) {
    struct quorum *grant = round_grant(round);
    bool counting = grant->counted && !round->ask.raise_token;
    struct quorum_rule open = {.counting = counting, .wait_ns = round->wait_ns, .open_ns = now_ns};
    struct quorum_rule fresh = open;
    fresh.sent_ns = round->started_ns;
    bool enough = quorum_votes(grant, &fresh) >= quorum_majority(grant);
    size_t pending = round_pending(round);
    struct instant sent;
    if (round->clash || quorum_is_over(grant)) {
        lose(round, now_ns);
    } else if (round->ask.raise_token) {
        /* Before a first lead after a wait all records that can be reached are read. */
        if (enough && (pending == 0 || now_ns >= round->patience_ns)) {
            start_writing(round, now_ns, &fresh);
        } else if (pending == 0) {
            doubt(round);
        }
    } else if (enough) {
        succeed(round, now_ns, counting);
    } else if (pending == 0) {
        bool later = quorum_sent(grant, &open, &sent) && sent.boot_ns > grant->told_sent_ns;
        if (later) {
            succeed(round, now_ns, counting);
        } else {
            doubt(round);
        }
    }
}

static void evaluate_release(struct round *round, int64_t now_ns) {
    struct quorum *grant = round_grant(round);
    size_t majority = quorum_majority(grant);
    size_t said = round_said(round);
    size_t pending = round_pending(round);
    bool late = now_ns >= round->patience_ns;
    size_t yes = 0;
    if (pending > 0 && !(late && said >= majority)) {
        return;
    }
    for (size_t i = 0; i < round->config.node_count; i++) {
        yes += round->nodes[i].said && round->nodes[i].reply.outcome == OUTCOME_YES ? 1 : 0;
    }
    if (said < majority) {
        doubt(round);
        return;
    }
    if (yes > 0) {
        round_say_yes(round, now_ns, false);
    } else {
        round_say_no(round, now_ns, REASON_RENEWAL_REFUSED);
    }
    end_nonce(round, grant->nonce);
    grant->live = false;
    finish(round);
}

static void evaluate_look(struct round *round, int64_t now_ns) {
    size_t majority = round->config.node_count / 2 + 1;
    size_t said = round_said(round);
    size_t pending = round_pending(round);
    bool late = now_ns >= round->patience_ns;
    if (pending > 0 && !(late && said >= majority)) {
        return;
    }
    if (said >= majority) {
        round_say_no(round, now_ns, REASON_HELD_BY_OTHER);
    } else {
        round_say_unsure(round);
    }
    finish(round);
}

static void evaluate(struct round *round, int64_t now_ns) {
    bool acquires = round->ask.op == OP_ACQUIRE;
    if (acquires && !round->ask.take) {
        evaluate_look(round, now_ns);
    } else if (round->ask.op == OP_RELEASE) {
        evaluate_release(round, now_ns);
    } else if (round->ask.op != OP_NONE && round->writes) {
        evaluate_writing(round, now_ns);
    } else if (acquires) {
        evaluate_acquire(round, now_ns);
    } else if (round->ask.op == OP_RENEW) {
        evaluate_renew(round, now_ns);
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
    round->patience_ns = now_ns + ask->timeout_ns / PATIENCE_SHARE;
    round->deadline_ns = now_ns + ask->timeout_ns;
    round->wait_ns = ask->wait_ns;
    round->writes = false;
    round->clash = false;
    round->warnings = 0;
    round->longest_ttl_ns = 0;
    round->done = false;
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
    return told || quorum_counts(node, round->wait_ns);
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
            give_back(round, index, asked->nonce, (const struct quorum_node *)0);
        }
    } else if (reply->outcome == OUTCOME_NO) {
        if (live) {
            quorum_refused(grant, index, !reply->held);
        }
        if (reply->held) {
            proof_held(&node->proof, reply);
        }
        if (reply->held && reply->holder_nonce_known && is_ended(round, reply->holder_nonce)) {
            give_back(round, index, reply->holder_nonce, (const struct quorum_node *)0);
        }
    } else if (asked->take && reply->sent.boot_ns != 0) {
        if (live) {
            grant->nodes[index].maybe = true;
        } else {
            give_back(round, index, asked->nonce, (const struct quorum_node *)0);
        }
    }
}

static void take_renewed(struct round *round, size_t index, const struct round_ask *asked,
                         const struct store_reply *reply, int64_t now_ns) {
    struct round_node *node = &round->nodes[index];
    struct quorum *grant = grant_of(round, asked->nonce);
    if (reply->outcome == OUTCOME_UNSURE) {
        return;
    }
    if (reply->outcome == OUTCOME_YES || reply->held) {
        proof_held(&node->proof, reply);
    }
    if (grant == (struct quorum *)0) {
        return;
    }
    if (reply->outcome == OUTCOME_YES) {
        quorum_renewed(grant, index, reply, now_ns);
        if (!grant->live) {
            give_back(round, index, asked->nonce, (const struct quorum_node *)0);
        }
    } else {
        quorum_refused(grant, index, !reply->held);
    }
}

/* What a node's answer means for the present operation. */
static void note_answer(struct round *round, size_t index, const struct store_reply *reply,
                        enum round_lists lists) {
    struct round_node *node = &round->nodes[index];
    struct quorum *grant = round_grant(round);
    node->answered = true;
    node->reply = *reply;
    node->said = node->said || reply->outcome != OUTCOME_UNSURE;
    if (reply->outcome == OUTCOME_UNSURE) {
        return;
    }
    round->warnings |= reply->warnings;
    round->warnings |= lists != LISTS_SAME ? (uint32_t)WARNING_NODE_LIST_DIFFERS : 0;
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
    bool present = round->ask.op != OP_NONE && node->asked_serial == round->serial;
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
        note_answer(round, index, reply, lists);
    }
    evaluate(round, now_ns);
}

void round_tick(struct round *round, int64_t now_ns) {
    if (round->ask.op == OP_NONE) {
        return;
    }
    if (now_ns >= round->deadline_ns + GRACE_NS) {
        for (size_t i = 0; i < round->config.node_count; i++) {
            round->nodes[i].answered = true;
            round->nodes[i].wanted = round->nodes[i].wanted && round->ask.op == OP_RELEASE;
        }
    }
    evaluate(round, now_ns);
}

int64_t round_wake_ns(const struct round *round, int64_t now_ns) {
    if (round->ask.op == OP_NONE) {
        return NEVER_NS;
    }
    return now_ns < round->patience_ns ? round->patience_ns : round->deadline_ns + GRACE_NS;
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
