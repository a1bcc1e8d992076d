#include "election/view.h"

#include "election/mutant.h"

/* What a leader's view says once the clocks no longer bear it out. */
static void answer_doubt(struct answer *answer, const struct view *view, struct instant now,
                         struct handouts *handouts) {
    answer->state = STATE_UNKNOWN;
    answer->reason = REASON_DEADLINE;
    if (lease_is_over(&view->lease, now)) {
        return;
    }
    if (view->lease.latched_ns != 0 || handouts->doubted_ns > view->doubt_seen_ns) {
        answer->reason = REASON_CLOCK_STEP;
    }
    if (lease_is_in_doubt(&view->lease, now)) {
        /* The core latches it: stepping the clock back must not bring the answer back. */
        answer->reason = REASON_CLOCK_STEP;
        handouts->doubted_ns = now.boot_ns;
    }
}

struct answer view_answer(const struct view *view, struct instant now, struct handouts *handouts) {
    struct answer answer = {.state = view->state, .reason = view->reason};
    if (view->state != STATE_LEADER) {
        return answer;
    }
    int64_t valid_ns = lease_remaining_ns(&view->lease, now);
    if (handouts->doubted_ns > view->doubt_seen_ns && !MUTANT(NO_LATCH)) {
        valid_ns = 0; /* a reader saw it run out, the core has not heard of it yet */
    }
    if (MUTANT(CACHED_FLAG)) {
        valid_ns = view->valid_for_ns;
    }
    if (valid_ns > view->valid_for_ns) {
        valid_ns = view->valid_for_ns;
    }
    valid_ns -= valid_ns % NS_PER_MS; /* readers are told milliseconds */
    if (valid_ns <= 0) {
        answer_doubt(&answer, view, now, handouts);
        return answer;
    }
    answer.leader = true;
    answer.token = view->token;
    answer.valid_ns = valid_ns;
    answer.deadline_ns = now.boot_ns + valid_ns;
    if (answer.deadline_ns > handouts->until_ns) {
        handouts->until_ns = answer.deadline_ns;
    }
    return answer;
}
