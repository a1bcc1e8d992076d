#ifndef GAVEL_STORE_REDIS_STEPS_H
#define GAVEL_STORE_REDIS_STEPS_H

#include "election/vouch.h"

/* Notices steps of the server's clock against CLOCK_BOOTTIME, from one reply to the next, and a
 * clock that stands: the keys of such a server never expire. */
struct redis_steps {
    bool known;
    char server[SERVER_ID_MAX];
    int64_t low_ns, high_ns;  /* between them the server's clock was ahead of BOOTTIME */
    int64_t mark_us, mark_ns; /* an earlier reading of the server's clock, and when it was here */
    bool stands;              /* since then it went at less than a quarter of its pace */
};

/* The size of the step in ns, 0 when there was none above the margin. A sample of another server
 * or an unknown one starts anew. */
int64_t redis_steps_add(struct redis_steps *steps, const struct vouch_sample *sample,
                        int64_t margin_ns);

#endif
