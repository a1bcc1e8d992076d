#include "election/quorum.h"

#include "election/mutant.h"

#include <string.h>

void quorum_init(struct quorum *quorum, size_t count, int64_t good_for_ns,
                 const unsigned char *nonce) {
    memset(quorum, 0, sizeof *quorum);
    quorum->count = count;
    quorum->good_for_ns = good_for_ns;
    quorum->live = true;
    memcpy(quorum->nonce, nonce, NONCE_BYTES);
}

size_t quorum_majority(const struct quorum *quorum) {
    return quorum->count / 2 + 1;
}

/* The same node, the same grant, without a gap: what it proved once still stands. */
static bool goes_on(const struct quorum *quorum, const struct quorum_node *node,
                    const struct store_reply *reply) {
    bool same = server_is_same(node->server, reply->server) ||
                (node->server[0] == '\0' && reply->server[0] == '\0');
    return node->held && same && reply->sent.boot_ns - node->sent.boot_ns < quorum->good_for_ns;
}

static void note_yes(struct quorum_node *node, const struct store_reply *reply) {
    node->held = true;
    node->refused = false;
    node->missing = false;
    node->token = reply->token;
    if (reply->sent.boot_ns > node->sent.boot_ns) {
        node->sent = reply->sent;
    }
    memcpy(node->server, reply->server, SERVER_ID_MAX);
}

static void start_anew(struct quorum_node *node, enum prior_doubt doubt, int64_t arrived_ns) {
    node->granted_ns = arrived_ns;
    node->proved = doubt == DOUBT_NONE;
    node->doubt = doubt;
    memset(&node->sent, 0, sizeof node->sent);
}

void quorum_granted(struct quorum *quorum, size_t index, const struct store_reply *reply,
                    enum prior_doubt doubt, int64_t arrived_ns) {
    struct quorum_node *node = &quorum->nodes[index];
    if (!goes_on(quorum, node, reply) || reply->token != node->token) {
        start_anew(node, doubt, arrived_ns);
    }
    node->maybe = false;
    note_yes(node, reply);
}

void quorum_renewed(struct quorum *quorum, size_t index, const struct store_reply *reply,
                    int64_t arrived_ns) {
    struct quorum_node *node = &quorum->nodes[index];
    if (!goes_on(quorum, node, reply) || reply->token < node->token) {
        start_anew(node, DOUBT_NO_RECORD, arrived_ns);
    }
    note_yes(node, reply);
}

void quorum_refused(struct quorum *quorum, size_t index, bool missing) {
    struct quorum_node *node = &quorum->nodes[index];
    node->held = false;
    node->refused = true;
    node->missing = missing;
}

bool quorum_counts(const struct quorum_node *node, int64_t wait_ns) {
    if (MUTANT(QUORUM_NO_WAIT)) {
        return node->held;
    }
    return node->held && (node->proved || node->sent.boot_ns >= node->granted_ns + wait_ns);
}

static bool is_under(const struct quorum *quorum, const struct quorum_node *node,
                     const struct quorum_rule *rule) {
    return node->held && (!rule->counting || quorum_counts(node, rule->wait_ns)) &&
           node->sent.boot_ns + quorum->good_for_ns > rule->open_ns &&
           node->sent.boot_ns >= rule->sent_ns && node->token >= rule->token;
}

/* "run_id:replication_id": the first part is the process, whatever name it is reached by. */
static bool is_one_server(const char *a, const char *b) {
    if (MUTANT(QUORUM_NAMES_VOTE)) {
        return false;
    }
    for (int i = 0; i < SERVER_ID_MAX; i++) {
        bool a_ends = a[i] == '\0' || a[i] == ':';
        bool b_ends = b[i] == '\0' || b[i] == ':';
        if (a_ends || b_ends) {
            return a_ends && b_ends;
        }
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Whether another node is the vote of this one's server: the one that was asked latest is. */
static bool is_shadowed(const struct quorum *quorum, size_t index, const struct quorum_rule *rule) {
    const struct quorum_node *node = &quorum->nodes[index];
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_node *other = &quorum->nodes[i];
        if (i == index || !is_under(quorum, other, rule) ||
            !is_one_server(node->server, other->server)) {
            continue;
        }
        bool later = other->sent.boot_ns > node->sent.boot_ns;
        if (later || (other->sent.boot_ns == node->sent.boot_ns && i < index)) {
            return true;
        }
    }
    return false;
}

static bool votes(const struct quorum *quorum, size_t index, const struct quorum_rule *rule) {
    return is_under(quorum, &quorum->nodes[index], rule) && !is_shadowed(quorum, index, rule);
}

size_t quorum_votes(const struct quorum *quorum, const struct quorum_rule *rule) {
    size_t found = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        found += votes(quorum, i, rule) ? 1 : 0;
    }
    return found;
}

bool quorum_sent(const struct quorum *quorum, const struct quorum_rule *rule,
                 struct instant *sent) {
    struct instant latest[QUORUM_NODES_MAX];
    size_t found = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        if (!votes(quorum, i, rule)) {
            continue;
        }
        size_t at = found++;
        for (; at > 0 && latest[at - 1].boot_ns < quorum->nodes[i].sent.boot_ns; at--) {
            latest[at] = latest[at - 1];
        }
        latest[at] = quorum->nodes[i].sent;
    }
    if (found < quorum_majority(quorum)) {
        return false;
    }
    *sent = latest[MUTANT(QUORUM_SENT_LATEST) ? 0 : quorum_majority(quorum) - 1];
    return true;
}

bool quorum_is_over(const struct quorum *quorum) {
    size_t refused = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        refused += quorum->nodes[i].refused ? 1 : 0;
    }
    return quorum->count - refused < quorum_majority(quorum);
}

uint64_t quorum_token(const struct quorum *quorum, const struct quorum_rule *rule) {
    uint64_t token = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_node *node = &quorum->nodes[i];
        if (is_under(quorum, node, rule) && node->token > token) {
            token = node->token;
        }
    }
    return token;
}

int64_t quorum_counts_from(const struct quorum *quorum, int64_t wait_ns) {
    int64_t from_ns[QUORUM_NODES_MAX];
    const struct quorum_rule any = {.counting = false};
    size_t found = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_node *node = &quorum->nodes[i];
        if (!votes(quorum, i, &any)) {
            continue;
        }
        int64_t this_ns = quorum_counts(node, wait_ns) ? 0 : node->granted_ns + wait_ns;
        size_t at = found++;
        for (; at > 0 && from_ns[at - 1] > this_ns; at--) {
            from_ns[at] = from_ns[at - 1];
        }
        from_ns[at] = this_ns;
    }
    return found < quorum_majority(quorum) ? NEVER_NS : from_ns[quorum_majority(quorum) - 1];
}

enum prior_doubt quorum_doubt(const struct quorum *quorum) {
    for (size_t i = 0; i < quorum->count; i++) {
        const struct quorum_node *node = &quorum->nodes[i];
        if (node->held && !node->proved && node->doubt != DOUBT_NONE) {
            return node->doubt;
        }
    }
    return DOUBT_NONE;
}
