#include "election/internal.h"

#include <string.h>

/* When the next operation is due. */

#define RETRY_FIRST_NS (20 * NS_PER_MS)
#define RETRY_MOST_NS (500 * NS_PER_MS)

unsigned pace_slot(uint64_t random) {
    return (unsigned)(random % ELECTION_SLOTS);
}

int64_t step_jitter_ns(const struct step *step, int64_t range_ns) {
    if (range_ns <= 0) {
        return 0;
    }
    uint64_t number = 0;
    memcpy(&number, step->event->random + NONCE_BYTES, sizeof number);
    return (int64_t)(number % (uint64_t)range_ns);
}

int64_t step_paced_ns(const struct step *step, int64_t from_ns) {
    int64_t pace_ns = step->election->config->ttl_ns / 3;
    int64_t phase_ns = pace_ns / ELECTION_SLOTS * step->election->pace_slot;
    int64_t latest_ns = from_ns + pace_ns;
    int64_t at_ns = latest_ns - (latest_ns + pace_ns - phase_ns) % pace_ns;
    return at_ns > step->now_ns ? at_ns : latest_ns;
}

int64_t step_backoff_ns(const struct step *step) {
    int64_t most_ns = step->election->config->ttl_ns / 10;
    if (most_ns > RETRY_MOST_NS) {
        most_ns = RETRY_MOST_NS;
    }
    int64_t delay_ns = RETRY_FIRST_NS;
    for (unsigned i = 1; i < step->election->failures && delay_ns < most_ns; i++) {
        delay_ns *= 2;
    }
    if (delay_ns > most_ns) {
        delay_ns = most_ns;
    }
    return delay_ns / 2 + step_jitter_ns(step, delay_ns / 2);
}

int64_t step_soon_ns(const struct step *step, bool clean) {
    const struct election *election = step->election;
    int64_t margin_ns = election->config->margin_ns;
    if (clean) {
        return step->now_ns; /* a pause would only leave nobody leading */
    }
    int64_t soon_ns = step->now_ns + step_jitter_ns(step, NS_PER_MS);
    bool vouches = vouch_holds(&election->proof.vouch, election->proof.vouch.newest_ns, margin_ns,
                               election_wait_ns(election));
    if (!vouches && !election->clockless && !election->config->efficiency) {
        soon_ns += margin_ns / 2;
    }
    return soon_ns;
}
