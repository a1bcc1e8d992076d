#include "election/election.h"

#include "election/internal.h"
#include "election/mutant.h"

#include <string.h>

#define ATTEMPT_MOST_NS (2 * NS_PER_S)

void election_init(struct election *election, const struct election_config *config,
                   uint64_t first_index, struct instant now) {
    memset(election, 0, sizeof *election);
    election->config = config;
    election->wake_ns = NEVER_NS;
    election->next_op_ns = now.boot_ns;
    election->view.state = STATE_UNKNOWN;
    election->view.reason = REASON_STARTING;
    election->view.valid_for_ns = config->valid_for_ns;
    election->view.since_real_ns = now.real_ns;
    election->view.index = first_index;
    election->pace_slot = config->one_pace ? 0 : pace_slot(first_index);
    election->app_required = config->require_app;
    election->app_unhealthy = config->app_check;
}

int64_t election_attempt_ns(const struct election_config *config) {
    int64_t attempt_ns = config->ttl_ns / 6;
    return attempt_ns < ATTEMPT_MOST_NS ? attempt_ns : ATTEMPT_MOST_NS;
}

int64_t election_wait_ns(const struct election *election) {
    int64_t wait_ns = election->config->ttl_ns;
    if (MUTANT(WAIT_OWN_TTL)) {
        return wait_ns;
    }
    if (election->config->wait_floor_ns > wait_ns) {
        wait_ns = election->config->wait_floor_ns;
    }
    return election->longest_ttl_ns > wait_ns ? election->longest_ttl_ns : wait_ns;
}

void step_move(struct step *step, enum election_state to, enum election_reason reason) {
    struct view *view = &step->election->view;
    view->reason = reason;
    if (view->state == to) {
        return;
    }
    if (!election_transition_find(view->state, to)) {
        __builtin_trap();
    }
    view->state = to;
    view->since_real_ns = step->event->now.real_ns;
    if (to != STATE_FOLLOWER) {
        memset(view->holder, 0, sizeof view->holder); /* compared as a whole */
        view->holder_since_ms = 0;
    }
}

void nonce_end(struct election *election) {
    if (MUTANT(NONCE_REUSED)) {
        return;
    }
    if (nonce_is_ours(election, election->nonce)) {
        return;
    }
    unsigned slot = election->ended_count % ENDED_NONCES;
    memcpy(election->ended[slot], election->nonce, NONCE_BYTES);
    election->ended_count++;
}

bool nonce_is_ours(const struct election *election, const unsigned char *nonce) {
    for (unsigned i = 0; i < ENDED_NONCES && i < election->ended_count; i++) {
        if (memcmp(election->ended[i], nonce, NONCE_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

void grant_clear(struct election *election) {
    election->grant = GRANT_NONE;
    election->waits = false;
    election->unproven = false;
    election->view.token = 0;
    election->view.granted_ms = 0;
    memset(&election->view.lease, 0, sizeof election->view.lease);
}

bool grant_wait_is_over(const struct election *election, int64_t now_ns) {
    return !election->waits || now_ns >= grant_wait_end_ns(election);
}

int64_t grant_wait_end_ns(const struct election *election) {
    if (election->wait_from_ns == NEVER_NS) {
        return NEVER_NS;
    }
    int64_t end_ns = election->wait_from_ns + election_wait_ns(election);
    return election->wait_until_ns > end_ns ? election->wait_until_ns : end_ns;
}

void step_give_back(struct step *step) {
    struct election *election = step->election;
    election->grant = GRANT_RETURNING;
    election->waits = true;
    election->wait_from_ns = NEVER_NS; /* a wait that is never over */
    election->failures = 0;
    election->next_op_ns = step->now_ns;
}

/* Whether the lease that we hold still holds: the clocks decide, whatever else happened. */
static void check_lease(struct step *step) {
    struct election *election = step->election;
    struct lease *lease = &election->view.lease;
    if (election->grant != GRANT_HELD) {
        return;
    }
    if (lease_is_over(lease, step->event->now)) {
        election->grant = GRANT_RETURNING;
        election->failures = 0;
        election->next_op_ns = step->now_ns;
        if (election->view.state != STATE_RESIGNING) {
            step_move(step, STATE_UNKNOWN, step->stalled ? REASON_PAUSED : REASON_DEADLINE);
        }
        return;
    }
    bool told = step->event->handouts.doubted_ns > election->view.doubt_seen_ns;
    bool doubt = lease_is_in_doubt(lease, step->event->now) || told;
    if (doubt && lease->latched_ns == 0 && !MUTANT(NO_LATCH)) {
        lease->latched_ns = step->now_ns;
        election->next_op_ns = step->now_ns; /* ask the store at once */
        if (election->view.state == STATE_LEADER) {
            step_move(step, STATE_UNKNOWN, REASON_CLOCK_STEP);
        }
    }
}

/* A follower that has heard nothing for a ttl does not know who leads. */
static void check_silence(struct step *step) {
    struct election *election = step->election;
    if (election->view.state == STATE_FOLLOWER &&
        step->now_ns - election->last_word_ns >= election->config->ttl_ns) {
        enum election_reason reason = election->view.reason;
        if (reason != REASON_STORE_REFUSED) {
            reason = REASON_STORE_UNREACHABLE;
        }
        step_move(step, STATE_UNKNOWN, reason);
    }
}

static void check_wait(struct step *step) {
    struct election *election = step->election;
    if (election->grant == GRANT_HELD && election->view.state == STATE_PENDING && election->waits &&
        grant_wait_is_over(election, step->now_ns)) {
        if (MUTANT(NO_RENEWAL_AFTER_WAIT)) {
            election->waits = false;
            step_move(step, STATE_LEADER, REASON_ACQUIRED);
            return;
        }
        if (election->failures == 0) {
            election->next_op_ns = step->now_ns; /* the renewal that it leads on */
        }
    }
}

static void start_acquire(struct step *step) {
    struct election *election = step->election;
    bool take = app_stands(election, step->now_ns);
    if (election->grant == GRANT_NONE) {
        if (!MUTANT(NONCE_REUSED) || election->ended_count == 0) {
            memcpy(election->nonce, step->event->random, NONCE_BYTES);
            election->ended_count += MUTANT(NONCE_REUSED) ? 1 : 0;
        }
        election->grant = take ? GRANT_ASKED : GRANT_NONE;
    }
    step->actions.op = OP_ACQUIRE;
    step->actions.take = take;
    election->op_takes = take;
}

static void start_renew(struct step *step) {
    struct election *election = step->election;
    election->op_raises = election->waits && election->view.state == STATE_PENDING &&
                          grant_wait_is_over(election, step->now_ns);
    step->actions.op = OP_RENEW;
    step->actions.raise_token = election->op_raises;
}

static void start_release(struct step *step) {
    struct election *election = step->election;
    /* Once the lease has run out, finding our nonce proves nothing about the time since. */
    bool mark = lease_remaining_ns(&election->view.lease, step->event->now) > 0 &&
                grant_wait_is_over(election, step->now_ns) && !election->unproven &&
                leaving_may_release(election, step->now_ns);
    step->actions.op = OP_RELEASE;
    step->actions.clean = mark || MUTANT(CLEAN_ALWAYS);
    step->actions.token = election->view.token;
    memcpy(step->actions.server, election->grant_server, SERVER_ID_MAX);
}

/* Starts the one operation that is due, if any. */
static void start_operation(struct step *step) {
    struct election *election = step->election;
    if (election->op != OP_NONE || step->now_ns < election->next_op_ns || step->actions.finished) {
        return;
    }
    switch (election->grant) {
    case GRANT_NONE:
    case GRANT_ASKED:
        start_acquire(step);
        break;
    case GRANT_HELD:
        if (election->leaving != LEAVING_NO && step->now_ns >= election->leave_by_ns) {
            return; /* the drain is over: let it lapse */
        }
        start_renew(step);
        break;
    case GRANT_RETURNING:
        if (!leaving_may_release(election, step->now_ns)) {
            election->next_op_ns = leaving_release_at_ns(election);
            return;
        }
        start_release(step);
        break;
    }
    election->op = step->actions.op;
    election->op_given_ns = step->now_ns;
    memcpy(step->actions.nonce, election->nonce, NONCE_BYTES);
    step->actions.wait_ns = election_wait_ns(election);
    step->actions.seen_token = MUTANT(SEEN_TOKEN_FORGOTTEN) ? 0 : election->seen_token;
}

static void wake_at(struct step *step, int64_t moment_ns) {
    if (moment_ns < step->actions.wake_ns) {
        step->actions.wake_ns = moment_ns;
    }
}

/* The next moment at which something changes by itself. */
static void plan_wake(struct step *step) {
    struct election *election = step->election;
    const struct lease *lease = &election->view.lease;
    step->actions.wake_ns = NEVER_NS;
    if (step->actions.finished) {
        return;
    }
    if (election->grant == GRANT_HELD) {
        wake_at(step, lease->boot_deadline_ns);
        if (!lease_is_in_doubt(lease, step->event->now)) {
            wake_at(step, step->now_ns + lease->real_deadline_ns - step->event->now.real_ns);
        }
    }
    if (election->view.state == STATE_FOLLOWER) {
        wake_at(step, election->last_word_ns + election->config->ttl_ns);
    }
    if (election->leaving != LEAVING_NO) {
        if (election->leave_by_ns > step->now_ns || election->leaving == LEAVING_EXIT) {
            wake_at(step, election->leave_by_ns);
        }
        if (leaving_release_at_ns(election) > step->now_ns) {
            wake_at(step, leaving_release_at_ns(election));
        }
    }
    if (election->op != OP_NONE) {
        return;
    }
    bool lapses = election->grant == GRANT_HELD && election->leaving != LEAVING_NO &&
                  step->now_ns >= election->leave_by_ns;
    if (!lapses) {
        wake_at(step, election->next_op_ns);
    }
    if (election->view.state == STATE_PENDING && !grant_wait_is_over(election, step->now_ns)) {
        wake_at(step, grant_wait_end_ns(election));
    }
}

static void step_wake(struct step *step) {
    struct election *election = step->election;
    if (election->op == OP_ACQUIRE) {
        election->wake_missed = true;
        election->wake_clean = step->event->clean;
        return;
    }
    if (election->grant != GRANT_NONE || !app_stands(election, step->now_ns) || election->refused) {
        return;
    }
    int64_t soon_ns = step_soon_ns(step, step->event->clean);
    if (soon_ns < election->next_op_ns) {
        election->next_op_ns = soon_ns;
    }
}

static void dispatch(struct step *step) {
    switch (step->event->type) {
    case EVENT_TICK:
        break;
    case EVENT_ACQUIRED:
        step_acquired(step);
        break;
    case EVENT_RENEWED:
        step_renewed(step);
        break;
    case EVENT_RELEASED:
        step_released(step);
        break;
    case EVENT_WAKE:
        step_wake(step);
        break;
    case EVENT_LOST:
        step_lost(step);
        break;
    case EVENT_RESIGN:
        step_leave(step, LEAVING_RESIGN, REASON_RESIGNED);
        break;
    case EVENT_DRAIN:
        step_leave(step, LEAVING_EXIT, REASON_DRAINING);
        break;
    case EVENT_APP:
        step_app(step);
        break;
    }
}

static uint64_t shown_token(const struct view *view) {
    return view->state == STATE_LEADER ? view->token : 0;
}

/* Notes what makes this step's view differ from the one before, and numbers it. */
static void finish_view(struct step *step, const struct view *before) {
    struct view *view = &step->election->view;
    view->wait_until_ns = view->state == STATE_PENDING ? grant_wait_end_ns(step->election) : 0;
    if (step->event->handouts.doubted_ns > view->doubt_seen_ns) {
        view->doubt_seen_ns = step->event->handouts.doubted_ns;
    }
    step->actions.changed = view->state != before->state ||
                            shown_token(view) != shown_token(before) ||
                            memcmp(view->holder, before->holder, sizeof view->holder) != 0;
    view->index += step->actions.changed ? 1 : 0;
}

struct election_actions election_step(struct election *election,
                                      const struct election_event *event) {
    struct step step = {.election = election, .event = event, .now_ns = event->now.boot_ns};
    struct view before = election->view;
    step.stalled = election->wake_ns != NEVER_NS &&
                   step.now_ns - election->wake_ns > election->config->margin_ns;
    if (event->handouts.until_ns > election->handed_out_until_ns) {
        election->handed_out_until_ns = event->handouts.until_ns;
    }
    if (event->handouts.app_until_ns > election->app_until_ns) {
        election->app_until_ns = event->handouts.app_until_ns;
    }
    step.held = election->grant == GRANT_HELD;
    step.held_until_ns = step.now_ns + lease_remaining_ns(&election->view.lease, event->now);
    check_lease(&step); /* first: an answer that comes too late must not find a live grant */
    dispatch(&step);
    check_lease(&step);
    check_wait(&step);
    step_app_progress(&step);
    step_leaving_progress(&step);
    check_silence(&step);
    start_operation(&step);
    plan_wake(&step);
    finish_view(&step, &before);
    election->wake_ns = step.actions.wake_ns;
    return step.actions;
}
