/*
 * What is promised, of several servers that vote: P1 to P4. Of a candidate it uses what it answers,
 * publishes and asks for, of a node what it says and holds, never how the core came to it.
 */
#include "legal.h"
#include "votes.h"

#include <string.h>

static bool same_nonce(const unsigned char *a, const unsigned char *b) {
    return memcmp(a, b, NONCE_BYTES) == 0;
}

static size_t majority_of(const struct votes_host *host) {
    return host->node_count / 2 + 1;
}

static int64_t good_for_ns(const struct votes_host *host) {
    return host->ttl_ns - host->margin_ns;
}

/* --- the grant, from requests and answers -------------------------------------------------- */

/* How many nodes have said yes so late that the grant is good until then, by BOOTTIME. */
static size_t good_until(const struct votes_host *host, int64_t boot_ns) {
    size_t found = 0;
    for (size_t i = 0; i < host->node_count; i++) {
        bool good = host->book.nodes[i].sent.boot_ns + good_for_ns(host) >= boot_ns;
        found += host->book.nodes[i].yes && good ? 1 : 0;
    }
    return found;
}

/* ... by both clocks. */
static size_t good_by_both(const struct votes_host *host, struct instant until) {
    size_t found = 0;
    for (size_t i = 0; i < host->node_count; i++) {
        const struct votes_word *word = &host->book.nodes[i];
        bool good = word->sent.boot_ns + good_for_ns(host) >= until.boot_ns &&
                    word->real_most_ns + good_for_ns(host) >= until.real_ns;
        found += word->yes && good ? 1 : 0;
    }
    return found;
}

void votes_check_start(struct votes_world *world, int index) {
    memset(&world->hosts[index].book, 0, sizeof world->hosts[index].book);
}

/* Somebody looks at the clocks. */
static void look(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    int64_t now_ns = votes_now(world, host).boot_ns;
    if (host->book.held && good_until(host, now_ns + 1) < majority_of(host)) {
        host->book.dead = true;
    }
}

void votes_check_event(struct votes_world *world, int index, const struct election_event *event) {
    struct votes_book *book = &world->hosts[index].book;
    if (event->type == EVENT_ACQUIRED && event->reply.outcome == OUTCOME_YES) {
        book->held = true;
    }
    bool over = event->type == EVENT_RELEASED ||
                (event->type == EVENT_RENEWED && event->reply.outcome == OUTCOME_NO);
    book->dead = book->dead || over;
    look(world, index);
}

void votes_check_answered(struct votes_world *world, const struct votes_event *event) {
    struct votes_host *host = &world->hosts[event->host];
    const struct lock_request *ask = &event->ask;
    bool lasts = ask->op == OP_RENEW || (ask->op == OP_ACQUIRE && ask->take);
    look(world, event->host);
    if (event->result.reply.outcome != OUTCOME_YES || !lasts ||
        !same_nonce(host->book.nonce, ask->nonce)) {
        return;
    }
    struct votes_word *word = &host->book.nodes[event->node];
    if (event->sent.real_ns > word->real_most_ns) {
        word->real_most_ns = event->sent.real_ns;
    }
    if (!word->yes || event->sent.boot_ns > word->sent.boot_ns) {
        word->yes = true;
        word->sent = event->sent;
        word->sent_at_ns = event->sent_at_ns;
    }
}

/* A release that was sent before the node's newest yes, when the attempt had failed, takes what a
 * later one with the same nonce was given: others know how long to wait by the record. */
void votes_check_arrived(struct votes_world *world, const struct votes_event *event) {
    const struct votes_book *book = &world->hosts[event->host].book;
    if (event->ask.op == OP_RELEASE && event->life == world->hosts[event->host].life &&
        same_nonce(book->nonce, event->ask.nonce) &&
        event->sent_at_ns < book->nodes[event->node].sent_at_ns) {
        world->disturbed_ns[event->node] = world->now_ns;
    }
}

/* --- P1 ------------------------------------------------------------------------------------- */

static void check_lease(struct votes_world *world, int index, const struct answer *answer) {
    struct votes_host *host = &world->hosts[index];
    struct instant now = votes_now(world, host);
    struct instant until = {answer->deadline_ns, now.real_ns + answer->valid_ns};
    /* Where REALTIME steps back one node's word will do: its step may lie between the requests. */
    size_t least = world->steps_back ? 1 : majority_of(host);
    const char *wrong = NULL;
    if (!host->book.known || host->book.dead) {
        wrong = "its grant is over";
    } else if (good_until(host, until.boot_ns) < majority_of(host)) {
        wrong = "no majority is good for so long on BOOTTIME";
    } else if (good_by_both(host, until) < least) {
        wrong = "no majority is good for so long on REALTIME";
    } else if (answer->valid_ns <= 0 || answer->valid_ns > host->config.valid_for_ns ||
               answer->deadline_ns != now.boot_ns + answer->valid_ns) {
        wrong = "the validity is not what it should be";
    }
    if (wrong != NULL) {
        votes_violation(world, "P1: host %d answers leader, but %s", index, wrong);
    }
}

/* A majority of nodes keeps the lock for longer, but where something took it away. */
static void check_keys(struct votes_world *world, int index, int64_t until_ns) {
    const struct votes_host *host = &world->hosts[index];
    size_t keep = 0;
    for (size_t i = 0; i < host->node_count; i++) {
        struct model_store *node = &world->nodes[i];
        model_store_expire(node, world->now_ns);
        bool keeps = node->key.present && same_nonce(node->key.nonce, host->book.nonce) &&
                     model_store_key_end(node) >= until_ns;
        bool disturbed =
            host->book.nodes[i].yes && world->disturbed_ns[i] >= host->book.nodes[i].sent_at_ns;
        keep += keeps || disturbed ? 1 : 0;
    }
    if (keep < majority_of(host)) {
        votes_violation(world, "P1: host %d answers beyond the lease that a majority keeps", index);
    }
}

/* --- P2 ------------------------------------------------------------------------------------- */

static void check_token(struct votes_world *world, int index, uint64_t token) {
    struct votes_host *host = &world->hosts[index];
    bool same = world->grants > 0 && world->led_by == index && world->led_in == host->life &&
                same_nonce(world->led_on, host->book.nonce);
    if (same && token != world->max_token) {
        votes_violation(world, "P2: host %d leads with %llu, on the grant that it led on with %llu",
                        index, (unsigned long long)token, (unsigned long long)world->max_token);
    }
    if (same) {
        return;
    }
    if (token <= world->max_token) {
        votes_violation(world, "P2: host %d leads with %llu after %llu", index,
                        (unsigned long long)token, (unsigned long long)world->max_token);
    }
    world->max_token = token;
    world->led_by = index;
    world->led_in = host->life;
    memcpy(world->led_on, host->book.nonce, NONCE_BYTES);
    world->grants++;
    world->failovers += world->last_leader != index && world->last_leader >= 0 ? 1 : 0;
    world->last_leader = index;
    votes_trace(world, "host %d leads with %llu", index, (unsigned long long)token);
}

/* --- P3 ------------------------------------------------------------------------------------- */

static bool is_own(const struct votes_world *world, const struct votes_promise *promise,
                   int index) {
    return promise->host == index && promise->life == world->hosts[index].life &&
           same_nonce(promise->nonce, world->hosts[index].book.nonce);
}

static void check_alone(struct votes_world *world, int index) {
    for (int i = 0; i < world->promise_count; i++) {
        const struct votes_promise *promise = &world->promises[i];
        if (promise->until_ns > world->now_ns && !is_own(world, promise, index)) {
            votes_violation(world,
                            "P3: host %d leads, and a validity of host %d (start %d) runs for "
                            "%.3f s still",
                            index, promise->host, promise->life,
                            (double)(promise->until_ns - world->now_ns) / 1e9);
        }
    }
}

/* The longest counts, whoever was given it. */
static void keep_promise(struct votes_world *world, int index, int64_t until_ns) {
    int kept = 0;
    for (int i = 0; i < world->promise_count; i++) {
        if (world->promises[i].until_ns > world->now_ns) {
            world->promises[kept++] = world->promises[i];
        }
    }
    world->promise_count = kept;
    for (int i = 0; i < kept; i++) {
        struct votes_promise *promise = &world->promises[i];
        if (is_own(world, promise, index)) {
            promise->until_ns = until_ns > promise->until_ns ? until_ns : promise->until_ns;
            return;
        }
    }
    if (kept == VOTES_PROMISES) {
        votes_violation(world, "too many validities at once");
        return;
    }
    struct votes_promise *promise = &world->promises[world->promise_count++];
    *promise = (struct votes_promise){
        .host = index, .life = world->hosts[index].life, .until_ns = until_ns};
    memcpy(promise->nonce, world->hosts[index].book.nonce, NONCE_BYTES);
}

void votes_ask(struct votes_world *world, int index) {
    struct votes_host *host = &world->hosts[index];
    struct answer answer = view_answer(&host->published, votes_now(world, host), &host->handouts);
    look(world, index);
    if (!answer.leader) {
        return;
    }
    int64_t until_ns = sim_clock_reach(&host->boot, answer.deadline_ns);
    check_lease(world, index, &answer);
    check_keys(world, index, until_ns);
    check_token(world, index, answer.token);
    check_alone(world, index);
    keep_promise(world, index, until_ns);
    world->last_lead_ns = world->now_ns;
}

/* --- P4, and what the core must keep to ----------------------------------------------------- */

/* What a host itself has promised must have run out before it gives the lock away. */
static void check_promises(struct votes_world *world, int index, const unsigned char *nonce) {
    for (int i = 0; i < world->promise_count; i++) {
        const struct votes_promise *promise = &world->promises[i];
        bool own = promise->host == index && promise->life == world->hosts[index].life;
        if (own && promise->until_ns > world->now_ns &&
            (nonce == NULL || same_nonce(promise->nonce, nonce))) {
            votes_violation(world,
                            "P4: host %d gives the lock back, a validity of its own runs "
                            "for %.3f s still",
                            index, (double)(promise->until_ns - world->now_ns) / 1e9);
        }
    }
}

static void check_view(struct votes_world *world, int index,
                       const struct election_actions *actions) {
    const struct votes_host *host = &world->hosts[index];
    const struct view *view = &host->election.view;
    const struct view *before = &host->published;
    if (!legal_change(before->state, view->state)) {
        votes_violation(world, "host %d: from %s to %s is no legal change", index,
                        election_state_name(before->state), election_state_name(view->state));
    }
    bool differs = view->state != before->state ||
                   (view->state == STATE_LEADER && view->token != before->token);
    if (differs && !actions->changed) {
        votes_violation(world, "host %d: the view changed and nobody is told", index);
    }
    if (actions->changed != (view->index > before->index)) {
        votes_violation(world, "host %d: the index does not grow with the change", index);
    }
}

void votes_check_step(struct votes_world *world, int index,
                      const struct election_actions *actions) {
    struct votes_host *host = &world->hosts[index];
    check_view(world, index, actions);
    if (actions->op == OP_NONE) {
        return;
    }
    if (host->round.ask.op != OP_NONE || host->round.done) {
        votes_violation(world, "host %d: two operations at once", index);
    }
    if (actions->op == OP_ACQUIRE && actions->take &&
        !(host->book.known && same_nonce(host->book.nonce, actions->nonce))) {
        votes_check_start(world, index);
        host->book.known = true;
        memcpy(host->book.nonce, actions->nonce, NONCE_BYTES);
    }
    if (actions->op != OP_RELEASE) {
        return;
    }
    check_promises(world, index, NULL);
    struct handouts unnoted = host->handouts;
    if (view_answer(&host->election.view, votes_now(world, host), &unnoted).leader) {
        votes_violation(world, "P4: host %d gives the lock back, its readers still hear leader",
                        index);
    }
}

/* A node that the grant is not on any more is cleared at once, but never with the mark. */
void votes_check_sent(struct votes_world *world, const struct votes_event *event) {
    if (event->ask.op == OP_RELEASE && event->ask.clean) {
        check_promises(world, event->host, event->ask.nonce);
    }
}
