#include "election/internal.h"
#include "election/mutant.h"

/*
 * Giving leadership away by choice (P4): readers hear of it first, renewals go on so that nobody
 * else can lead, and the lock is released when every validity handed out has run out.
 */

bool leaving_may_release(const struct election *election, int64_t now_ns) {
    if (MUTANT(RELEASE_WHILE_VALID)) {
        return true;
    }
    bool stopped = election->config->drain_none && election->leaving == LEAVING_EXIT;
    if (MUTANT(APP_DRAIN_RELEASES) && now_ns >= election->leave_by_ns) {
        return now_ns >= election->handed_out_until_ns;
    }
    return stopped || now_ns >= leaving_release_at_ns(election);
}

int64_t leaving_release_at_ns(const struct election *election) {
    int64_t app_ns = app_release_at_ns(election);
    return app_ns > election->handed_out_until_ns ? app_ns : election->handed_out_until_ns;
}

/* `--drain none` says that the application has ended when SIGTERM comes; it says nothing of a
 * resignation, which waits for its readers all the same. */
static int64_t drain_time_ns(const struct election_config *config, enum election_leaving kind) {
    if (!config->drain_none) {
        return config->drain_ns;
    }
    int64_t attempts_ns = 2 * election_attempt_ns(config);
    return kind == LEAVING_EXIT ? attempts_ns : config->valid_for_ns + attempts_ns;
}

void step_leave(struct step *step, enum election_leaving kind, enum election_reason reason) {
    struct election *election = step->election;
    if (election->leaving == LEAVING_EXIT) {
        return;
    }
    election->leaving = kind;
    election->stands_back = kind == LEAVING_RESIGN;
    election->leave_by_ns = step->now_ns + drain_time_ns(election->config, kind);
    if (election->grant == GRANT_HELD) {
        step_move(step, STATE_RESIGNING, reason);
    } else {
        election->view.reason = reason;
    }
    if (election->grant == GRANT_RETURNING && election->op == OP_NONE) {
        election->next_op_ns = step->now_ns; /* what it waited for may no longer count */
    }
    if (election->grant == GRANT_ASKED && election->op == OP_NONE) {
        step_give_back(step); /* perhaps it was granted */
    }
}

static void leaving_complete(struct step *step) {
    struct election *election = step->election;
    if (election->view.state == STATE_RESIGNING) {
        step_move(step, STATE_FOLLOWER, election->view.reason);
    }
    if (election->leaving == LEAVING_EXIT) {
        step->actions.resigned = true; /* whoever asked for a resignation has it */
        step->actions.finished = true;
        return;
    }
    if (election->leaving == LEAVING_RESIGN) {
        step->actions.resigned = true;
    }
    if (election->stands_back) {
        election->stands_back = false;
        election->stand_back_until_ns = step->now_ns + election_wait_ns(election);
    }
    election->leaving = LEAVING_NO;
}

void step_leaving_progress(struct step *step) {
    struct election *election = step->election;
    if (election->leaving == LEAVING_NO) {
        return;
    }
    if (election->grant == GRANT_NONE) {
        leaving_complete(step);
        return;
    }
    if (election->grant == GRANT_HELD && election->op == OP_NONE &&
        leaving_may_release(election, step->now_ns)) {
        election->grant = GRANT_RETURNING;
        election->failures = 0;
        election->next_op_ns = step->now_ns;
    }
    if (election->leaving == LEAVING_EXIT && step->now_ns >= election->leave_by_ns) {
        step->actions.finished = true;
        step->actions.left_to_lapse = true;
    }
}
