#include "election/mutant.h"
#include "election/round_inside.h"

#include <string.h>

/* What the nodes' answers so far mean for the operation. */

#define AGAIN_DOUBLINGS 5
#define AGAIN_NS (3 * NS_PER_MS) /* what others need to give back what they took */
/* What a node that answers at all may take longer than a majority: it may know of a lease under a
 * list of nodes that has no majority in common with ours. */
#define GLANCE_NS (25 * NS_PER_MS)

static void end_grant(struct round *round, const struct quorum *grant, bool untold) {
    if (!round_is_ended(round, grant->nonce)) {
        unsigned place = round->ended_count % ENDED_NONCES;
        memcpy(round->ended[place], grant->nonce, NONCE_BYTES);
        round->untold[place] = untold;
        round->ended_count++;
    }
}

/* The operation is over. */
static void finish(struct round *round) {
    struct quorum *held = &round->grants[round->held];
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct round_node *node = &round->nodes[i];
        if (round->ask.op == OP_RELEASE && node->wanted) {
            round_give_back(round, i, round->ask.nonce, (const struct quorum_node *)0);
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

/* Enough nodes gave the lock, but they are names of too few servers: nobody else is in the way. */
static bool is_one_server(const struct round *round, const struct quorum *grant) {
    const struct quorum_rule any = {.counting = false};
    size_t held = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        held += grant->nodes[i].held ? 1 : 0;
    }
    size_t majority = quorum_majority(grant);
    return held >= majority && quorum_votes(grant, &any) < majority;
}

/* A failed acquire leaves nothing behind: every node that gave the lock, or that may have. The mark
 * is for a nonce that is never used again: a release may come late. */
static void fail_acquire(struct round *round, int64_t now_ns, bool refused) {
    struct quorum *grant = round_grant(round);
    /* Half of an even number is no majority, but its no is enough. */
    bool no = refused || quorum_is_over(grant) || round_said(round) >= quorum_majority(grant);
    round->one_server = is_one_server(round, grant);
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct quorum_node *node = &grant->nodes[i];
        if (node->held || node->maybe) {
            round_give_back(round, i, grant->nonce, no ? node : (struct quorum_node *)0);
        }
        node->held = false;
        node->maybe = false;
    }
    grant->live = false;
    if (no) {
        end_grant(round, grant, grant->first_yes_ns == 0);
        bool ours = round->clash || round->one_server;
        round_say_no(round, now_ns, ours ? REASON_STORE_REFUSED : REASON_HELD_BY_OTHER);
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
            end_grant(round, &round->grants[round->held], false);
        }
        round->grants[round->held].live = false;
        round->held = index;
    }
    round->collisions = 0;
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
                round_give_back(round, i, grant->nonce, (const struct quorum_node *)0);
            }
        }
        end_grant(round, grant, false);
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
    round->again_ns = 0;
    round->glance_ns = NEVER_NS;
    round->settled_ns = NEVER_NS;
    round->patience_ns = now_ns + round->ask.timeout_ns / ROUND_PATIENCE_SHARE;
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
    if (round->clash && round->ask.op == OP_ACQUIRE) {
        fail_acquire(round, now_ns, true);
    } else if (round->clash) {
        lose(round, now_ns);
    } else if (quorum_votes(grant, &counting) >= quorum_majority(grant)) {
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

/* Rivals have parts of it, and a majority of nodes has spoken a while ago: who waits for silent
 * nodes loses more time than a new attempt takes. */
static bool is_settled(struct round *round, int64_t now_ns) {
    size_t said = 0;
    bool rivals = false;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        said += node->said ? 1 : 0;
        /* One who has just come, not one who is gone and whose lease runs out. */
        rivals = rivals || (node->said && node->reply.outcome == OUTCOME_NO &&
                            node->reply.holder_nonce_known &&
                            node->reply.expires_in_ns > round->config.ttl_ns / 2);
    }
    if (!rivals || said < round->config.node_count / 2 + 1) {
        return false;
    }
    if (round->settled_ns == NEVER_NS) {
        round->settled_ns = now_ns + GLANCE_NS;
    }
    return now_ns >= round->settled_ns;
}

/* How many nodes are held by the one that refused us at `index`. */
static size_t held_by_same(const struct round *round, size_t index) {
    size_t same = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        same += node->said && node->reply.held && node->reply.holder_nonce_known &&
                        memcmp(node->reply.holder_nonce, round->nodes[index].reply.holder_nonce,
                               NONCE_BYTES) == 0
                    ? 1
                    : 0;
    }
    return same;
}

/* Candidates that came at the same moment have taken each other's majority away. The one that has
 * most, or the smaller nonce, stays; the others give back what they have. */
static bool is_favourite(const struct round *round, size_t has) {
    bool collided = false;
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_node *node = &round->nodes[i];
        if (!node->said || node->reply.outcome != OUTCOME_NO || !node->reply.holder_nonce_known) {
            continue;
        }
        size_t others = held_by_same(round, i);
        bool smaller = memcmp(round->ask.nonce, node->reply.holder_nonce, NONCE_BYTES) < 0;
        if (others > has || (others == has && !smaller)) {
            return false;
        }
        collided = true;
    }
    return collided;
}

/* A majority of those that count has it; whether the others have had the time to object. */
static bool is_unopposed(struct round *round, size_t pending, int64_t now_ns) {
    if (round->glance_ns == NEVER_NS) {
        round->glance_ns = now_ns + GLANCE_NS;
    }
    return pending == 0 || now_ns >= round->glance_ns || now_ns >= round->patience_ns;
}

/* Whether those who stand in the way are asked once more: they give back what they took. */
static bool waits_for_rivals(struct round *round, size_t has, int64_t now_ns) {
    if (now_ns >= round->patience_ns || !is_favourite(round, has)) {
        return false;
    }
    if (round->again_ns == 0) {
        /* Less and less often: it may be gone, with a lease that lasts. */
        unsigned doublings = round->agains < AGAIN_DOUBLINGS ? round->agains : AGAIN_DOUBLINGS;
        round->again_ns = now_ns + (AGAIN_NS << doublings);
        round->agains++;
    }
    return true;
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
    bool settled = is_settled(round, now_ns);
    bool over = has + pending < majority;
    bool enough = round_said(round) >= majority; /* half of an even number shows no holder */
    if (round->clash) {
        fail_acquire(round, now_ns, true);
    } else if (quorum_votes(grant, &counting) >= majority) {
        if (is_unopposed(round, pending, now_ns)) {
            start_writing(round, now_ns, &held);
        }
    } else if (has >= majority && late) {
        /* What a rival gives back may prove what a node of this majority does not. */
        if (!waits_for_rivals(round, has, now_ns)) {
            start_writing(round, now_ns, &held);
        }
    } else if ((over && enough) || (late && (over || enough)) || (settled && has < majority)) {
        if (!waits_for_rivals(round, has, now_ns)) {
            fail_acquire(round, now_ns, false);
        }
    }
}

void round_ask_node_again(struct round_node *node) {
    node->wanted = true;
    node->answered = false; /* what it said counts until it says something else */
}

void round_ask_again(struct round *round) {
    const struct quorum *grant = round_grant(round);
    round->again_ns = 0;
    for (size_t i = 0; i < round->config.node_count; i++) {
        struct round_node *node = &round->nodes[i];
        if (node->answered && node->said && grant->nodes[i].refused) {
            round_ask_node_again(node);
        }
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
    end_grant(round, grant, false);
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

void round_judge(struct round *round, int64_t now_ns) {
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
