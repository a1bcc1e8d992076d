#ifndef GAVEL_STORE_REDIS_STEPS_H
#define GAVEL_STORE_REDIS_STEPS_H

#include "election/vouch.h"

/* Notices steps of the server's clock against CLOCK_BOOTTIME, from one reply to the next. */
struct redis_steps {
    bool known;
    char server[SERVER_ID_MAX];
    int64_t low_ns, high_ns; /* between them the server's clock was ahead of BOOTTIME */
};

/* The size of the step in ns, 0 when there was none above the margin. A sample of another server
 * or an unknown one starts anew. */
int64_t redis_steps_add(struct redis_steps *steps, const struct vouch_sample *sample,
                        int64_t margin_ns);

#endif
