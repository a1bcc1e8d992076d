#include "store/redis/steps.h"

#include <string.h>

/* Replies may follow each other closely: only over a margin can a pace be told. */
static void watch_pace(struct redis_steps *steps, const struct vouch_sample *sample, bool same,
                       int64_t margin_ns) {
    int64_t passed_ns = sample->sent_ns - steps->mark_ns; /* that much, or more */
    if (same && passed_ns < margin_ns) {
        return;
    }
    int64_t went_ns = (sample->server_now_us - steps->mark_us) * NS_PER_US;
    steps->stands = same && went_ns >= 0 && went_ns < passed_ns / 4;
    steps->mark_us = sample->server_now_us;
    steps->mark_ns = sample->arrived_ns;
}

int64_t redis_steps_add(struct redis_steps *steps, const struct vouch_sample *sample,
                        int64_t margin_ns) {
    int64_t step_ns = 0;
    /* The server read its clock at some moment between the sending and the arrival. */
    int64_t low_ns = sample->server_now_us * NS_PER_US - sample->arrived_ns;
    int64_t high_ns = sample->server_now_us * NS_PER_US - sample->sent_ns;

    bool same = steps->known && strncmp(steps->server, sample->server, sizeof steps->server) == 0;
    watch_pace(steps, sample, same, margin_ns);
    if (same) {
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
