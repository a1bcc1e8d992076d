#include "election/internal.h"
#include "election/mutant.h"

#include <string.h>

/* What the store's answers mean for the candidate. */

#define TTL_MOST_NS (3600 * NS_PER_S)
#define EXPIRY_SLACK_NS (1 * NS_PER_MS) /* a key is gone only after the millisecond of its end */
#define EXPIRY_JITTER_NS (4 * NS_PER_MS)
#define LOST_JITTER_NS (10 * NS_PER_MS)

/* Every definite answer teaches something: tokens, ttls, the store's clock. */
static void learn(struct step *step) {
    struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    if (reply->outcome == OUTCOME_UNSURE) {
        return;
    }
    election->last_word_ns = step->now_ns;
    if (reply->token > election->seen_token && reply->token <= TOKEN_MAX) {
        election->seen_token = reply->token;
    }
    if (reply->longest_ttl_ns > election->longest_ttl_ns && reply->longest_ttl_ns <= TTL_MOST_NS) {
        election->longest_ttl_ns = reply->longest_ttl_ns;
    }
    uint32_t own = election->view.warnings & WARNING_IDENTITY_NOT_UNIQUE;
    election->view.warnings = reply->warnings | own;
    election->view.safety = reply->safety;
    election->clockless = reply->server_now_us == 0;
    proof_learn(&election->proof, reply, step->now_ns, election->config->margin_ns,
                election_wait_ns(election));
}

static bool vouches(const struct step *step) {
    return step->event->reply.vouched ||
           vouch_holds(&step->election->proof.vouch, step->now_ns,
                       step->election->config->margin_ns, election_wait_ns(step->election));
}

/* Whether an older lease may still be trusted. The proof does not know of this lease yet. */
static enum prior_doubt judge_prior(const struct step *step) {
    const struct election *election = step->election;
    return proof_judge(&election->proof, &step->event->reply, step->now_ns,
                       election->config->margin_ns, election_wait_ns(election));
}

static void extend(struct step *step) {
    const struct election_config *config = step->election->config;
    struct instant sent = step->event->reply.sent;
    if (MUTANT(DEADLINE_FROM_REPLY)) {
        sent = step->event->now;
    }
    lease_extend(&step->election->view.lease, sent, config->ttl_ns - config->margin_ns);
}

static void acquired_yes(struct step *step) {
    struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    uint64_t seen_token = election->seen_token;
    learn(step); /* this reply is a measurement of the store's clock too */
    enum prior_doubt doubt = judge_prior(step);
    memset(&election->view.lease, 0, sizeof election->view.lease);
    extend(step);
    bool in_time = lease_remaining_ns(&election->view.lease, step->event->now) > 0;
    bool usable = reply->token > seen_token && reply->token <= TOKEN_MAX && election->op_takes;
    if (!usable) {
        election->view.reason = REASON_STORE_REFUSED; /* no token that could be published */
    }
    if (!usable || !in_time || election->leaving != LEAVING_NO) {
        step_give_back(step);
        return;
    }
    proof_held(&election->proof, reply);
    memcpy(election->grant_server, reply->server, SERVER_ID_MAX);
    election->grant = GRANT_HELD;
    election->view.token = reply->token;
    election->view.granted_ms = reply_held_since_ms(reply);
    if (election->view.granted_ms == 0) { /* the store does not write it down */
        election->view.granted_ms = step->event->now.real_ns / NS_PER_MS;
    }
    election->view.doubt = doubt;
    election->waits = doubt != DOUBT_NONE || reply->wait_until_ns > step->now_ns;
    election->wait_until_ns = reply->wait_until_ns;
    election->wait_from_ns = MUTANT(WAIT_FROM_SEND) ? reply->sent.boot_ns : step->now_ns;
    election->next_op_ns = step_paced_ns(step, election->op_given_ns);
    if (election->waits && !election->config->efficiency) {
        step_move(step, STATE_PENDING, REASON_WAITING_FOR_OLD_LEASE);
    } else {
        step_move(step, STATE_LEADER, REASON_ACQUIRED);
    }
}

/* How long a follower may sleep. */
static int64_t sleep_most_ns(const struct step *step) {
    int64_t most_ns = step->election->config->ttl_ns / 3;
    int64_t poll_ns = step->election->config->poll_ns;
    if (poll_ns > 0 && poll_ns < most_ns) {
        most_ns = poll_ns;
    }
    bool foreign = step->event->reply.reason == REASON_FOREIGN_VALUE;
    return foreign && most_ns > NS_PER_S ? NS_PER_S : most_ns;
}

/* How long it sleeps when it knows of no expiry: those that poll often come at any time, the others
 * each at their own. */
static int64_t poll_sleep_ns(const struct step *step, int64_t most_ns) {
    const struct election *election = step->election;
    if (most_ns < election->config->ttl_ns / 3) {
        return most_ns - step_jitter_ns(step, most_ns / 8);
    }
    return step_paced_ns(step, election->op_given_ns) - step->now_ns;
}

/* How long a follower sleeps: to the key's expiry, and never longer than it may. */
static int64_t follower_sleep_ns(const struct step *step) {
    const struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    int64_t most_ns = sleep_most_ns(step);
    int64_t poll_ns = poll_sleep_ns(step, most_ns);
    if (!reply->held || reply->expires_in_ns < 0) {
        return poll_ns;
    }
    int64_t expiry_ns =
        reply->expires_in_ns + EXPIRY_SLACK_NS + step_jitter_ns(step, EXPIRY_JITTER_NS);
    if (!election->config->efficiency && !vouches(step)) {
        expiry_ns += election->config->margin_ns / 2; /* whoever can lead at once goes first */
    }
    /* Not in between either: whoever cannot lead at once would come before those who can. */
    bool after_expiry = most_ns > reply->expires_in_ns;
    return expiry_ns < poll_ns || after_expiry ? expiry_ns : poll_ns;
}

static void acquired_no(struct step *step) {
    struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    learn(step);
    if (election->op_takes && election->failures > 0) {
        nonce_end(election); /* an earlier request of this attempt may still be under way */
    }
    election->failures = 0;
    grant_clear(election);
    if (reply->held) {
        proof_held(&election->proof, reply);
    }
    step_move(step, STATE_FOLLOWER, reply->held ? reply->reason : election->view.reason);
    step_holder(step, reply);
    if (reply->held && reply->holder_nonce_known && nonce_is_ours(election, reply->holder_nonce)) {
        memcpy(election->nonce, reply->holder_nonce, NONCE_BYTES);
        step_give_back(step); /* an acquire of ours that came late: nobody leads on it */
        return;
    }
    election->next_op_ns = step->now_ns + follower_sleep_ns(step);
    if (election->wake_missed && !election->refused) {
        election->next_op_ns = step_soon_ns(step, election->wake_clean);
    }
    if (step->now_ns < election->stand_back_until_ns &&
        election->stand_back_until_ns < election->next_op_ns) {
        election->next_op_ns = election->stand_back_until_ns;
    }
    if (app_may_be_at_work(election, step->now_ns) &&
        election->app_until_ns < election->next_op_ns) {
        election->next_op_ns = election->app_until_ns;
    }
}

static void note_trouble(struct step *step) {
    struct election *election = step->election;
    election->failures++;
    if (election->view.state != STATE_RESIGNING && election->leaving == LEAVING_NO) {
        election->view.reason = step->event->reply.reason;
    }
    election->next_op_ns = step->now_ns + step_backoff_ns(step);
}

void step_acquired(struct step *step) {
    struct election *election = step->election;
    election->op = OP_NONE;
    election->refused = step->event->reply.outcome == OUTCOME_NO &&
                        step->event->reply.reason == REASON_STORE_REFUSED;
    switch (step->event->reply.outcome) {
    case OUTCOME_YES:
        election->failures = 0;
        acquired_yes(step);
        break;
    case OUTCOME_NO:
        acquired_no(step);
        break;
    case OUTCOME_UNSURE:
        note_trouble(step);
        if (election->leaving != LEAVING_NO && election->grant == GRANT_ASKED) {
            step_give_back(step);
        }
        break;
    }
    election->wake_missed = false;
}

/* The store's own word that the lock is not ours: over at once. */
static void lose(struct step *step) {
    struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    nonce_end(election);
    grant_clear(election);
    election->failures = 0;
    election->next_op_ns = step->now_ns + step_jitter_ns(step, LOST_JITTER_NS);
    if (reply->held) {
        proof_held(&election->proof, reply);
    }
    if (election->view.state != STATE_RESIGNING) {
        step_move(step, STATE_FOLLOWER, reply->reason);
        step_holder(step, reply);
    }
}

/*
 * Whether a yes is about the grant as we know it. Data older than our own token comes from before
 * it; and after a doubt only the same server can vouch that the lock never changed hands.
 */
static bool yes_counts(const struct election *election, const struct store_reply *reply) {
    if (MUTANT(LATCH_ANY_YES)) {
        return true;
    }
    bool told = reply->token != 0 && !election->op_raises;
    if (told && reply->token < election->view.token) {
        return false;
    }
    if (election->view.lease.latched_ns == 0) {
        return true;
    }
    if (told && reply->token != election->view.token) {
        return false; /* a late copy of our acquire made the lock anew */
    }
    bool nameless = reply->server_now_us == 0 && election->grant_server[0] == '\0';
    return nameless || server_is_same(election->grant_server, reply->server);
}

static void renewed_yes(struct step *step) {
    struct election *election = step->election;
    const struct store_reply *reply = &step->event->reply;
    if (!yes_counts(election, reply)) {
        step_give_back(step);
        if (election->view.state != STATE_RESIGNING) {
            step_move(step, STATE_UNKNOWN, REASON_RENEWAL_REFUSED);
        }
        return;
    }
    memcpy(election->grant_server, reply->server, SERVER_ID_MAX);
    extend(step);
    proof_held(&election->proof, reply);
    election->failures = 0;
    /* Of several servers some may have answered an earlier renewal only. */
    int64_t from_ns = election->op_given_ns;
    if (reply->sent.boot_ns < from_ns) {
        from_ns = reply->sent.boot_ns;
    }
    election->next_op_ns = step_paced_ns(step, from_ns);
    const struct lease *lease = &election->view.lease;
    if (lease->latched_ns != 0) {
        election->next_op_ns = step->now_ns; /* sent before the doubt: ask again */
    }
    bool raised = reply->token > election->view.token && reply->token <= TOKEN_MAX;
    if (election->op_raises && raised) {
        election->view.token = reply->token;
    }
    if (lease_remaining_ns(lease, step->event->now) == 0 || election->leaving != LEAVING_NO) {
        return;
    }
    if (election->op_raises && !raised) {
        step_give_back(step); /* after a wait it has to be greater */
        step_move(step, STATE_UNKNOWN, REASON_STORE_REFUSED);
        return;
    }
    if (election->waits && !election->config->efficiency) {
        election->wait_until_ns = reply->wait_until_ns;
        /* Only a renewal that was sent after the wait proves that the lock outlived it. */
        if (!election->op_raises || !grant_wait_is_over(election, reply->sent.boot_ns)) {
            step_move(step, STATE_PENDING, REASON_WAITING_FOR_OLD_LEASE);
            return;
        }
        election->waits = false;
        step_move(step, STATE_LEADER, REASON_ACQUIRED);
        return;
    }
    step_move(step, STATE_LEADER, REASON_RENEWED);
}

void step_renewed(struct step *step) {
    struct election *election = step->election;
    election->op = OP_NONE;
    learn(step);
    if (election->grant != GRANT_HELD) {
        return; /* the deadline came first: over for good */
    }
    switch (step->event->reply.outcome) {
    case OUTCOME_YES:
        renewed_yes(step);
        break;
    case OUTCOME_NO:
        lose(step);
        break;
    case OUTCOME_UNSURE:
        note_trouble(step);
        if (election->config->step_down && election->leaving == LEAVING_NO) {
            step_leave(step, LEAVING_STEP_DOWN, step->event->reply.reason);
        }
        break;
    }
}

void step_released(struct step *step) {
    struct election *election = step->election;
    election->op = OP_NONE;
    learn(step);
    if (step->event->reply.outcome == OUTCOME_UNSURE) {
        note_trouble(step);
        bool lapsed =
            step->now_ns >= election->view.lease.boot_deadline_ns + election->config->margin_ns;
        if (election->leaving != LEAVING_NO && !lapsed) {
            return; /* try again: somebody waits for it */
        }
        if (election->failures < 3) {
            return;
        }
        /* Let it lapse. Should it be found later, it is given back then. */
    }
    nonce_end(election);
    grant_clear(election);
    election->failures = 0;
    bool refused = election->view.reason == REASON_STORE_REFUSED;
    int64_t pause_ns = refused ? election->config->ttl_ns / 3 : 0;
    election->next_op_ns = step->now_ns + pause_ns + step_jitter_ns(step, LOST_JITTER_NS);
}

void step_lost(struct step *step) {
    if (step->election->grant == GRANT_HELD) {
        lose(step);
    }
}
