#include "election/lease.h"

#include "election/mutant.h"

void lease_extend(struct lease *lease, struct instant sent, int64_t good_for_ns) {
    int64_t boot_deadline_ns = sent.boot_ns + good_for_ns;
    if (boot_deadline_ns > lease->boot_deadline_ns) {
        lease->boot_deadline_ns = boot_deadline_ns;
    }
    /* Replaced, not raised: after a backward step the old one would lie too far ahead. */
    lease->real_deadline_ns = sent.real_ns + good_for_ns;
    if (lease->latched_ns != 0 && sent.boot_ns >= lease->latched_ns) {
        lease->latched_ns = 0;
    }
}

bool lease_is_over(const struct lease *lease, struct instant now) {
    return now.boot_ns >= lease->boot_deadline_ns;
}

bool lease_is_in_doubt(const struct lease *lease, struct instant now) {
    if (MUTANT(REAL_IGNORED)) {
        return false;
    }
    return now.real_ns >= lease->real_deadline_ns;
}

int64_t lease_remaining_ns(const struct lease *lease, struct instant now) {
    if (lease_is_over(lease, now) || lease_is_in_doubt(lease, now)) {
        return 0;
    }
    if (lease->latched_ns != 0 && !MUTANT(NO_LATCH)) {
        return 0;
    }
    int64_t boot_ns = lease->boot_deadline_ns - now.boot_ns;
    int64_t real_ns = lease->real_deadline_ns - now.real_ns;
    if (MUTANT(REAL_IGNORED)) {
        return boot_ns;
    }
    return boot_ns < real_ns ? boot_ns : real_ns;
}
