#include "election/vouch.h"

#include <string.h>

static void span_clear(struct vouch *vouch, int index) {
    vouch->spans[index].min_ns = INT64_MAX;
    vouch->spans[index].max_ns = INT64_MIN;
}

static void series_start(struct vouch *vouch, const struct vouch_sample *sample, int64_t wait_ns) {
    memset(vouch, 0, sizeof *vouch);
    for (int i = 0; i < SERVER_ID_MAX - 1 && sample->server[i] != '\0'; i++) {
        vouch->server[i] = sample->server[i];
    }
    vouch->first_ns = sample->arrived_ns;
    vouch->span_start_ns = sample->arrived_ns;
    vouch->wait_ns = wait_ns;
    for (int i = 0; i < 3; i++) {
        span_clear(vouch, i);
    }
}

bool server_is_same(const char *a, const char *b) {
    for (int i = 0; i < SERVER_ID_MAX && a[i] == b[i]; i++) {
        if (a[i] == '\0') {
            return i > 0;
        }
    }
    return false;
}

/* Starts a new current span when the old one is W long; the oldest is forgotten. */
static void spans_turn(struct vouch *vouch, int64_t now_ns, int64_t wait_ns) {
    if (now_ns - vouch->span_start_ns < wait_ns) {
        return;
    }
    vouch->spans[2] = vouch->spans[1];
    vouch->spans[1] = vouch->spans[0];
    span_clear(vouch, 0);
    vouch->span_start_ns = now_ns;
}

void vouch_add(struct vouch *vouch, const struct vouch_sample *sample, int64_t margin_ns,
               int64_t wait_ns) {
    int64_t round_trip_ns = sample->arrived_ns - sample->sent_ns;
    if (sample->server[0] == '\0' || sample->server_now_us <= 0) {
        vouch->first_ns = 0;
        return;
    }
    bool known = vouch->first_ns != 0 && server_is_same(vouch->server, sample->server);
    if (round_trip_ns < 0 || round_trip_ns >= margin_ns / 4) {
        if (!known) {
            vouch->first_ns = 0; /* another server: what was measured before says nothing of it */
        }
        return;
    }
    /* A long silence proves nothing about the time between. */
    if (!known || sample->arrived_ns - vouch->newest_ns > wait_ns || wait_ns > vouch->wait_ns) {
        series_start(vouch, sample, wait_ns);
    }
    spans_turn(vouch, sample->arrived_ns, wait_ns);
    int64_t middle_ns = sample->sent_ns + round_trip_ns / 2;
    int64_t offset_ns = sample->server_now_us * NS_PER_US - middle_ns;
    if (offset_ns < vouch->spans[0].min_ns) {
        vouch->spans[0].min_ns = offset_ns;
    }
    if (offset_ns > vouch->spans[0].max_ns) {
        vouch->spans[0].max_ns = offset_ns;
    }
    vouch->newest_ns = sample->arrived_ns;
}

bool vouch_holds(const struct vouch *vouch, int64_t arrived_ns, int64_t margin_ns,
                 int64_t wait_ns) {
    if (vouch->first_ns == 0 || vouch->newest_ns != arrived_ns || wait_ns > vouch->wait_ns ||
        arrived_ns - vouch->first_ns < wait_ns) {
        return false;
    }
    int64_t min_ns = INT64_MAX;
    int64_t max_ns = INT64_MIN;
    for (int i = 0; i < 3; i++) {
        if (vouch->spans[i].min_ns < min_ns) {
            min_ns = vouch->spans[i].min_ns;
        }
        if (vouch->spans[i].max_ns > max_ns) {
            max_ns = vouch->spans[i].max_ns;
        }
    }
    return max_ns - min_ns <= margin_ns / 4;
}
