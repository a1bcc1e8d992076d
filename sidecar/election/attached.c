#include "election/internal.h"
#include "election/mutant.h"

/*
 * The attached application (P5). While it may still work under a grant (`app_token`), the lock is
 * not given away and no new grant is taken, until it is done: it says so, gives up, or its
 * connection is ended by itself. One that is silent (no beat, or a connection that the sidecar had
 * to end) has not stopped for all we know: then only the end of its validity counts. One that was
 * silent once is not waited for any longer under that grant, even if it is heard of again.
 */

#define SHRINKS_NS (10 * NS_PER_MS) /* what is worth telling again */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void app_clear(struct step *step) {
    struct election *election = step->election;
    election->app_token = 0;
    election->app_until_ns = 0;
    election->app_revoked = false;
    election->app_silent = false;
    step->actions.app_stopped = true;
    if (election->grant == GRANT_RETURNING && election->op == OP_NONE) {
        election->next_op_ns = step->now_ns; /* what the release waited for */
    }
}

static bool app_is_silent(const struct election *election) {
    return election->app_silent || election->app_cut;
}

bool app_may_be_at_work(const struct election *election, int64_t now_ns) {
    if (election->app_token == 0 || MUTANT(APP_LEAD_BEFORE_DONE)) {
        return false;
    }
    return now_ns < election->app_until_ns;
}

bool app_stands(const struct election *election, int64_t now_ns) {
    if (now_ns < election->stand_back_until_ns || app_may_be_at_work(election, now_ns)) {
        return false;
    }
    if (MUTANT(APP_STANDS_ALONE)) {
        return true;
    }
    bool alone = election->app_required && !election->app_attached;
    return !alone && !election->app_hung && !election->app_unhealthy;
}

int64_t app_release_at_ns(const struct election *election) {
    if (election->app_token == 0 || MUTANT(APP_RELEASE_BEFORE_DONE)) {
        return 0;
    }
    if (app_is_silent(election)) {
        return MUTANT(APP_SILENT_IS_DONE) ? 0 : election->app_until_ns;
    }
    if (election->grant == GRANT_HELD) {
        return NEVER_NS;
    }
    /* It never said that it is done: by then the lock has gone by itself. */
    int64_t gone_ns = election->view.lease.boot_deadline_ns + election->config->margin_ns;
    return gone_ns > election->app_until_ns ? gone_ns : election->app_until_ns;
}

/* In this moment an application that is attached works under the grant that leads. */
static void app_joins(struct election *election) {
    if (election->view.state != STATE_LEADER || !election->app_attached) {
        return;
    }
    if (election->app_token != election->view.token || election->app_revoked) {
        election->app_token = election->view.token;
        election->app_revoked = false;
        election->app_silent = false;
        election->app_cut = false;
    }
}

/* By when it has to have stopped: never later than what holds, and what it was promised. */
static int64_t app_stop_by_ns(const struct step *step) {
    const struct election *election = step->election;
    const struct lease *lease = &election->view.lease;
    if (election->grant == GRANT_HELD && election->leaving != LEAVING_NO) {
        int64_t by_ns = step->now_ns + lease_remaining_ns(lease, step->event->now);
        int64_t most_ns = app_is_silent(election) ? election->app_until_ns : election->leave_by_ns;
        by_ns = most_ns < by_ns ? most_ns : by_ns;
        return by_ns > step->now_ns ? by_ns : step->now_ns;
    }
    bool doubt = lease->latched_ns != 0 || lease_is_in_doubt(lease, step->event->now);
    if (election->app_until_ns <= step->now_ns || (election->grant == GRANT_HELD && doubt)) {
        return step->now_ns;
    }
    /* Lost: the promise that it had, no more; and less where the wall clock has run past it. */
    int64_t by_ns = election->app_revoked ? election->app_stop_ns : election->app_until_ns;
    return step->held ? least(by_ns, step->held_until_ns) : by_ns;
}

static void app_revoke(struct step *step, int64_t by_ns) {
    struct election *election = step->election;
    bool known = election->app_revoked && (by_ns >= election->app_stop_ns - SHRINKS_NS ||
                                           election->app_stop_ns <= step->now_ns);
    if (known || !election->app_attached || election->app_cut) {
        return;
    }
    election->app_revoked = true;
    election->app_stop_ns = by_ns;
    if (by_ns > election->app_until_ns) {
        election->app_until_ns = by_ns; /* this is a promise too */
    }
    step->actions.revoke = true;
    step->actions.revoke_token = election->app_token;
    step->actions.revoke_by_ns = by_ns;
}

void step_app_progress(struct step *step) {
    struct election *election = step->election;
    app_joins(election);
    if (election->app_token == 0 || election->view.state == STATE_LEADER) {
        return;
    }
    if (election->config->drain_none && election->leaving == LEAVING_EXIT) {
        app_revoke(step, step->now_ns);
        app_clear(step); /* that is what the option says */
        return;
    }
    app_revoke(step, app_stop_by_ns(step));
    bool holds = election->grant == GRANT_HELD || election->grant == GRANT_RETURNING;
    if (!holds && step->now_ns >= election->app_until_ns) {
        app_clear(step); /* its validity has passed, and there is nothing to give back */
    }
}

/* Leadership that is there, or on its way, is given away; then it stands back. */
static void app_leave(struct step *step, enum election_reason reason) {
    if (step->election->leaving != LEAVING_RESIGN || step->election->grant == GRANT_NONE) {
        step_leave(step, LEAVING_RESIGN, reason);
    }
}

static void app_attaches(struct step *step) {
    struct election *election = step->election;
    election->app_attached = true;
    election->app_required = true;
    election->app_hung = false;
    election->stand_back_until_ns = 0;
    if (election->leaving == LEAVING_RESIGN) {
        election->stands_back = false; /* there is somebody to lead for */
    }
}

static void app_ends(struct step *step, bool by_peer) {
    struct election *election = step->election;
    bool known = by_peer && !election->app_cut;
    election->app_required = true;
    election->app_attached = false;
    election->app_hung = false;
    if (known) {
        app_clear(step);
    } else if (election->app_token != 0) {
        election->app_cut = true;
    }
    if (!MUTANT(APP_GONE_STAYS)) {
        app_leave(step, REASON_APP_GONE);
    }
}

static void app_falls_silent(struct step *step) {
    struct election *election = step->election;
    if (!election->app_attached || election->app_hung) {
        return;
    }
    election->app_hung = true;
    election->app_silent = election->app_token != 0;
    if (election->config->efficiency && election->app_token != 0) {
        election->unproven = true; /* not waited for, so no mark either */
        app_revoke(step, step->now_ns);
        app_clear(step);
    }
    app_leave(step, REASON_APP_HUNG);
}

static void app_is_done(struct step *step) {
    struct election *election = step->election;
    bool same = step->event->token == election->app_token || MUTANT(APP_DONE_ANY);
    /* Whoever attached after one that was cut off cannot speak for it. */
    if (same && election->app_token != 0 && !election->app_cut &&
        election->view.state != STATE_LEADER) {
        app_clear(step);
    }
}

/* It may stand from now on: it tries for the lock, instead of sleeping as a follower does. */
static void app_hurry(struct step *step) {
    struct election *election = step->election;
    if (election->op == OP_ACQUIRE) {
        election->wake_missed = true;
        election->wake_clean = false;
    } else if (election->grant == GRANT_NONE) {
        int64_t soon_ns = step_soon_ns(step, false);
        election->next_op_ns = soon_ns < election->next_op_ns ? soon_ns : election->next_op_ns;
    }
}

static void app_event(struct step *step) {
    struct election *election = step->election;
    switch (step->event->app) {
    case APP_ATTACHED:
        app_attaches(step);
        break;
    case APP_GONE:
    case APP_CUT:
        app_ends(step, step->event->app == APP_GONE);
        break;
    case APP_HUNG:
        app_falls_silent(step);
        break;
    case APP_BEATS:
        election->app_hung = false;
        break;
    case APP_DONE:
        app_is_done(step);
        break;
    case APP_RESIGNS:
        if (!election->app_cut) {
            app_clear(step);
        }
        step_leave(step, LEAVING_RESIGN, REASON_RESIGNED);
        break;
    case APP_HEALTHY:
        election->app_unhealthy = false;
        break;
    case APP_UNHEALTHY:
        election->app_unhealthy = true;
        app_leave(step, REASON_APP_UNHEALTHY);
        break;
    }
}

void step_app(struct step *step) {
    bool stood = app_stands(step->election, step->now_ns);
    app_event(step);
    if (!stood && app_stands(step->election, step->now_ns)) {
        app_hurry(step);
    }
}
