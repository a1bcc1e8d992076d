#ifndef GAVEL_ELECTION_LEASE_H
#define GAVEL_ELECTION_LEASE_H

#include "election/instant.h"

#include <stdbool.h>

/*
 * The time a grant is good for. A request sent at s is good until s + ttl - margin; a reply can
 * only bring the deadline that its own send time gives (the rule of the Redlock description and
 * of every lease since Gray and Cheriton, 1989).
 *
 * Two deadlines, one on each clock; what remains is the smaller. BOOTTIME run out: over for good.
 * REALTIME alone run out: in doubt, kept in `latched`, until a renewal that was sent after that
 * moment says yes.
 */
struct lease {
    int64_t boot_deadline_ns; /* CLOCK_BOOTTIME; 0: no lease */
    int64_t real_deadline_ns; /* CLOCK_REALTIME */
    int64_t latched_ns;       /* CLOCK_BOOTTIME at which the doubt was noticed; 0: none */
};

/* good_for_ns is ttl - margin. Replaces both deadlines; never moves the BOOTTIME one back. Ends a
 * doubt only when `sent` is not before the moment it was noticed. */
void lease_extend(struct lease *lease, struct instant sent, int64_t good_for_ns);

/* What a reader may count on; 0 when over or in doubt. */
int64_t lease_remaining_ns(const struct lease *lease, struct instant now);

/* The BOOTTIME deadline has passed (or there is no lease). */
bool lease_is_over(const struct lease *lease, struct instant now);

/* REALTIME has run out while BOOTTIME has not. */
bool lease_is_in_doubt(const struct lease *lease, struct instant now);

#endif
