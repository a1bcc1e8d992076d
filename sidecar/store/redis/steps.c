#include "store/redis/steps.h"

#include <string.h>

int64_t redis_steps_add(struct redis_steps *steps, const struct vouch_sample *sample,
                        int64_t margin_ns) {
    int64_t step_ns = 0;
    /* The server read its clock at some moment between the sending and the arrival. */
    int64_t low_ns = sample->server_now_us * NS_PER_US - sample->arrived_ns;
    int64_t high_ns = sample->server_now_us * NS_PER_US - sample->sent_ns;

    if (steps->known && strncmp(steps->server, sample->server, sizeof steps->server) == 0) {
        if (low_ns > steps->high_ns + margin_ns) {
            step_ns = low_ns - steps->high_ns;
        } else if (high_ns < steps->low_ns - margin_ns) {
            step_ns = high_ns - steps->low_ns;
        }
    }
    steps->known = sample->server[0] != '\0';
    strncpy(steps->server, sample->server, sizeof steps->server - 1);
    steps->server[sizeof steps->server - 1] = '\0';
    steps->low_ns = low_ns;
    steps->high_ns = high_ns;
    return step_ns;
}
