#include "election/internal.h"

#include <string.h>

/* Who holds the lock, as readers are shown it: never as ourselves. */

#define SINCE_MOST_MS INT64_C(253402300799999) /* the end of the year 9999: four digits */

static bool same_text(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static size_t append_text(char *to, size_t at, const char *text) {
    while (*text != '\0' && at < HOLDER_MAX - 1) {
        to[at++] = *text++;
    }
    return at;
}

static size_t append_nonce(char *to, size_t at, const unsigned char *nonce) {
    static const char digits[] = "0123456789abcdef";
    to[at++] = '~';
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        to[at++] = digits[nonce[i] >> 4];
        to[at++] = digits[nonce[i] & 15];
    }
    return at;
}

/* Another holder with our name, for longer than an earlier life of ours could last. */
static void note_twin(struct step *step, bool twin) {
    struct election *election = step->election;
    if (!twin) {
        election->twin_since_ns = 0;
        election->view.warnings &= ~(uint32_t)WARNING_IDENTITY_NOT_UNIQUE;
        return;
    }
    if (election->twin_since_ns == 0) {
        election->twin_since_ns = step->now_ns;
    }
    if (step->now_ns - election->twin_since_ns > election_wait_ns(election)) {
        election->view.warnings |= WARNING_IDENTITY_NOT_UNIQUE;
    }
}

int64_t reply_held_since_ms(const struct store_reply *reply) {
    bool sane = reply->held_since_ms > 0 && reply->held_since_ms <= SINCE_MOST_MS;
    return sane ? reply->held_since_ms : 0;
}

void step_holder(struct step *step, const struct store_reply *reply) {
    struct election *election = step->election;
    char holder[HOLDER_MAX];
    memset(holder, 0, sizeof holder); /* compared as a whole */
    bool twin = false;
    if (reply->held) {
        size_t at = append_text(holder, 0, reply->holder);
        const char *own = election->config->identity;
        if (own && same_text(own, reply->holder)) {
            twin = reply->holder_nonce_known && !nonce_is_ours(election, reply->holder_nonce);
            append_nonce(holder, at, reply->holder_nonce);
        }
    }
    memcpy(election->view.holder, holder, sizeof holder);
    election->view.holder_since_ms = holder[0] != '\0' ? reply_held_since_ms(reply) : 0;
    note_twin(step, twin);
}
