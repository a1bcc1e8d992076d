#include "election/round_inside.h"

#include <string.h>

/* What nodes tell of locks that were given back. */

/* A release of an attempt, or of a grant, of this round's own is no news: who is woken by what it
 * gives back itself would never stop. */
static bool is_ours(const struct round *round, const unsigned char *nonce) {
    static const unsigned char none[NONCE_BYTES]; /* a message may come without one */
    if (memcmp(nonce, none, NONCE_BYTES) == 0) {
        return false;
    }
    return memcmp(round->grants[0].nonce, nonce, NONCE_BYTES) == 0 ||
           memcmp(round->grants[1].nonce, nonce, NONCE_BYTES) == 0 || round_is_ended(round, nonce);
}

/* What stood in the way there is gone: not only when all of those are asked again. */
static void ask_again_at_once(struct round *round, size_t index) {
    struct round_node *node = &round->nodes[index];
    const struct quorum *grant = round_grant(round);
    bool waits = round->ask.op == OP_ACQUIRE && round->ask.take && round->again_ns != 0;
    if (waits && node->answered && node->said && grant->nodes[index].refused) {
        round_ask_node_again(node);
    }
}

bool round_told(struct round *round, size_t index, const unsigned char *nonce, bool *clean) {
    size_t majority = round->config.node_count / 2 + 1;
    size_t same = 0;
    size_t marked = 0;
    if (is_ours(round, nonce)) {
        return false;
    }
    ask_again_at_once(round, index);
    round->told[index].told = true;
    round->told[index].clean = *clean;
    memcpy(round->told[index].nonce, nonce, NONCE_BYTES);
    for (size_t i = 0; i < round->config.node_count; i++) {
        const struct round_told *other = &round->told[i];
        bool alike = other->told && memcmp(other->nonce, nonce, NONCE_BYTES) == 0;
        same += alike ? 1 : 0;
        marked += alike && other->clean ? 1 : 0;
    }
    *clean = marked == majority;
    return same == majority;
}
