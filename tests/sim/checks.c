#include "checks.h"

#include "apps.h"
#include "host.h"
#include "legal.h"
#include "readers.h"

#include <string.h>

static bool same_nonce(const unsigned char *a, const unsigned char *b) {
    return memcmp(a, b, NONCE_BYTES) == 0;
}

/* --- the lease, from requests and replies ------------------------------------------------- */

static void book_extend(struct grant_book *book, const struct host *host,
                        const struct store_reply *reply) {
    int64_t good_ns = host->config.ttl_ns - host->config.margin_ns;
    int64_t deadline_ns = reply->sent.boot_ns + good_ns;
    if (deadline_ns > book->boot_deadline_ns) {
        book->boot_deadline_ns = deadline_ns;
    }
    book->real_deadline_ns = reply->sent.real_ns + good_ns;
    book->sent_ns = reply->sent.boot_ns;
    book->sent_at_ns = host->op_sent_at_ns;
    if (reply->sent.boot_ns >= book->doubted_ns) {
        book->doubted_ns = 0;
    }
}

/* Somebody looks at the clocks. */
static void book_look(struct grant_book *book, struct instant now) {
    if (book->known && now.boot_ns >= book->boot_deadline_ns) {
        book->dead = true;
    }
    if (book->known && book->doubted_ns == 0 && now.real_ns >= book->real_deadline_ns) {
        book->doubted_ns = now.boot_ns;
    }
}

void checks_event(struct world *world, struct host *host, const struct election_event *event) {
    struct grant_book *book = &host->book;
    const struct store_reply *reply = &event->reply;
    book_look(book, event->now);
    switch (event->type) {
    case EVENT_ACQUIRED:
        if (reply->outcome == OUTCOME_YES) {
            *book = (struct grant_book){.known = true, .token = reply->token};
            memcpy(book->nonce, host->op_request.nonce, NONCE_BYTES);
            book_extend(book, host, reply);
            host->waited = false;
        } else if (reply->outcome == OUTCOME_NO) {
            book->dead = true;
        }
        break;
    case EVENT_RENEWED:
        if (reply->outcome == OUTCOME_YES && !book->dead &&
            same_nonce(book->nonce, host->op_request.nonce)) {
            world_count(world, STAT_RENEWALS);
            book_extend(book, host, reply);
            book->token = host->op_request.raise_token ? reply->token : book->token;
        } else if (reply->outcome == OUTCOME_NO) {
            book->dead = true;
        }
        break;
    case EVENT_LOST:
    case EVENT_RELEASED:
        book->dead = true;
        break;
    case EVENT_TICK:
    case EVENT_WAKE:
    case EVENT_RESIGN:
    case EVENT_DRAIN:
    case EVENT_APP:
        break;
    }
    book_look(book, event->now);
}

/* --- P1 ------------------------------------------------------------------------------------ */

static void check_lease(struct world *world, const struct host *host, struct instant now,
                        const struct answer *answer) {
    const struct grant_book *book = &host->book;
    const char *wrong = NULL;
    if (!book->known || book->dead) {
        wrong = "its grant is over";
    } else if (book->doubted_ns != 0) {
        wrong = "REALTIME ran out and no later renewal was confirmed";
    } else if (answer->deadline_ns > book->boot_deadline_ns) {
        wrong = "the validity outlives the lease on BOOTTIME";
    } else if (answer->valid_ns > book->real_deadline_ns - now.real_ns) {
        wrong = "the validity outlives the lease on REALTIME";
    } else if (answer->valid_ns <= 0 || answer->valid_ns > host->config.valid_for_ns ||
               answer->deadline_ns != now.boot_ns + answer->valid_ns) {
        wrong = "the validity is not what it should be";
    } else if (answer->token != book->token) {
        wrong = "the token is not the grant's";
    }
    if (wrong) {
        world_violation(world, "P1: host %d answers leader, but %s", host->index, wrong);
    }
}

/* The store itself still keeps the lock for longer, unless something took it away. */
static void check_key(struct world *world, const struct host *host, int64_t end_ns) {
    struct lock_key *key = &world->store.key;
    /* What goes with its connection is kept by the messages on that, not by those about the row. */
    if (world->plan.kind != KIND_LEASE && host->book.sent_at_ns <= world->store_disturbed_ns) {
        return;
    }
    for (unsigned i = 0; i < world->minted_count && i < TOKENS_MOST; i++) {
        const struct minted *minted = &world->minted[i];
        if (minted->token == host->book.token && same_nonce(minted->nonce, host->book.nonce) &&
            minted->at_ns > world->store_disturbed_ns) {
            model_store_expire(&world->store, world->now_ns);
            if (!key->present || !same_nonce(key->nonce, host->book.nonce) ||
                model_store_key_end(&world->store) < end_ns) {
                world_violation(world, "P1: host %d answers beyond the lease that the store keeps",
                                host->index);
            }
            return;
        }
    }
}

/* --- P3 ------------------------------------------------------------------------------------ */

static void check_alone(struct world *world, const struct host *host) {
    for (int i = 0; i < world->validity_count; i++) {
        const struct validity *validity = &world->validities[i];
        if (validity->end_ns > world->now_ns &&
            (validity->host != host->index || validity->epoch != host->epoch ||
             !same_nonce(validity->nonce, host->book.nonce))) {
            world_violation(world,
                            "P3: host %d answers leader, a validity of host %d (process %u) runs "
                            "for %.3f ms more",
                            host->index, validity->host, validity->epoch,
                            (double)(validity->end_ns - world->now_ns) / 1e6);
        }
    }
    for (int i = 0; i < world->plan.hosts; i++) {
        if (i != host->index && readers_would_lead(world, &world->hosts[i])) {
            world_violation(world, "P3: hosts %d and %d answer leader at once", host->index, i);
        }
    }
}

static void keep_validity(struct world *world, const struct host *host, int64_t end_ns, bool app) {
    int kept = 0;
    for (int i = 0; i < world->validity_count; i++) {
        if (world->validities[i].end_ns > world->now_ns) {
            world->validities[kept++] = world->validities[i];
        }
    }
    world->validity_count = kept;
    for (int i = 0; i < kept; i++) {
        struct validity *validity = &world->validities[i];
        if (validity->host == host->index && validity->epoch == host->epoch &&
            validity->app == app && same_nonce(validity->nonce, host->book.nonce)) {
            validity->end_ns = end_ns > validity->end_ns ? end_ns : validity->end_ns;
            return;
        }
    }
    if (kept == VALIDITIES_MOST) {
        world_violation(world, "too many validities at once to be judged");
        return;
    }
    struct validity *validity = &world->validities[world->validity_count++];
    *validity =
        (struct validity){.host = host->index, .epoch = host->epoch, .app = app, .end_ns = end_ns};
    memcpy(validity->nonce, host->book.nonce, NONCE_BYTES);
}

void checks_forget_validities(struct world *world, const struct host *host) {
    for (int i = 0; i < world->validity_count; i++) {
        if (world->validities[i].host == host->index) {
            world->validities[i].end_ns = 0;
        }
    }
}

void checks_promise(struct world *world, const struct host *host, int64_t end_ns) {
    keep_validity(world, host, end_ns, true);
}

void checks_answer(struct world *world, struct host *host, struct instant now,
                   const struct answer *answer) {
    checks_answer_to(world, host, now, answer, false);
}

void checks_answer_to(struct world *world, struct host *host, struct instant now,
                      const struct answer *answer, bool app) {
    book_look(&host->book, now);
    world->digest = rng_mix(world->digest ^ answer->token ^ (uint64_t)now.boot_ns);
    if (!answer->leader) {
        return;
    }
    int64_t end_ns = sim_clock_reach(&host->boot, answer->deadline_ns);
    check_lease(world, host, now, answer);
    check_key(world, host, end_ns);
    checks_token_answered(world, host, answer->token);
    if (!world->plan.efficiency) {
        check_alone(world, host);
    }
    apps_check_answer(world, host);
    keep_validity(world, host, end_ns, app);
    if (world->last_leader != host->index) {
        world->stats->counts[STAT_TAKEOVERS] += world->last_leader >= 0 ? 1 : 0;
        world->last_leader = host->index;
    }
    if (world->first_lead_ns == 0) {
        world->first_lead_ns = world->now_ns;
    }
    world->last_lead_ns = world->now_ns;
}

/* --- P4, and what the core must keep to ----------------------------------------------------- */

void checks_operation(struct world *world, const struct host *host,
                      const struct election_actions *actions) {
    if (host->op != OP_NONE) {
        world_violation(world, "host %d: two operations at once", host->index);
    }
    if (actions->op != OP_RELEASE) {
        return;
    }
    world_count(world, actions->clean ? STAT_RELEASES_CLEAN : STAT_RELEASES_UNCLEAN);
    if (readers_would_lead(world, host)) {
        world_violation(world, "P4: host %d gives the lock back, its readers still hear leader",
                        host->index);
    }
    for (int i = 0; i < world->validity_count; i++) {
        const struct validity *validity = &world->validities[i];
        if (validity->host == host->index && validity->epoch == host->epoch &&
            validity->end_ns > world->now_ns) {
            world_violation(world,
                            "P4: host %d gives the lock back, a validity of its own runs for "
                            "%.3f ms more",
                            host->index, (double)(validity->end_ns - world->now_ns) / 1e6);
        }
    }
}

void checks_actions(struct world *world, const struct host *host,
                    const struct election_actions *actions) {
    const struct view *view = &host->election.view;
    if (!actions->changed &&
        (view->state != host->published.state ||
         (view->state == STATE_LEADER && view->token != host->published.token))) {
        world_violation(world, "host %d: the view changed and nobody is told", host->index);
    }
    if (actions->changed != (view->index > host->published.index)) {
        world_violation(world, "host %d: the index does not grow with the change", host->index);
    }
}

static void count_lead(struct world *world, const struct host *host) {
    enum stat stat = STAT_LEADS_WAITED;
    if (!host->waited) {
        const struct lock_record *record = &world->store.record;
        bool ours = record->present && same_nonce(record->nonce, host->book.nonce);
        stat = ours && record->kept == PRIOR_CLEAN ? STAT_LEADS_CLEAN : STAT_LEADS_END;
        stat = world->plan.efficiency ? STAT_LEADS_EFFICIENCY : stat;
    }
    world_count(world, stat);
}

void checks_view(struct world *world, struct host *host, const struct view *view) {
    enum election_state from = host->published.state;
    if (view->state == from) {
        return;
    }
    if (!legal_change(from, view->state)) {
        world_violation(world, "host %d: from %s to %s is no legal change", host->index,
                        election_state_name(from), election_state_name(view->state));
    }
    if (view->state == STATE_PENDING) {
        host->waited = true;
        world_count(world, STAT_PENDINGS);
    }
    if (view->state == STATE_LEADER) {
        count_lead(world, host);
    }
}

void checks_applied(struct world *world, const struct message *message,
                    const struct lock_key *before, const struct lock_result *result) {
    const struct lock_request *request = &message->body.request;
    checks_token_issued(world, request, result);
    bool held = before->present && same_nonce(before->nonce, request->nonce);
    if (request->op != OP_ACQUIRE && result->reply.outcome == OUTCOME_YES && !held) {
        world_violation(world, "the store renews or releases a lock that host %d does not hold",
                        request->host);
    }
    if (request->op == OP_ACQUIRE && result->reply.outcome == OUTCOME_YES && !result->granted) {
        world_count(world, STAT_RETRIES_GRANTED);
    }
}

/* --- somebody leads ------------------------------------------------------------------------- */

void checks_sample(struct world *world) {
    if (world->first_lead_ns == 0) {
        return;
    }
    world->samples++;
    world->led_samples += readers_leader(world) >= 0 ? 1 : 0;
}

void checks_end(struct world *world) {
    if (world->last_lead_ns < world->now_ns - 2 * world->plan.ttl_most_ns) {
        world_violation(world, "liveness: nobody leads, though all faults are long over");
    }
    for (int i = 0; i < world->plan.hosts; i++) {
        if (world->hosts[i].draining) {
            world_violation(world, "liveness: host %d never finishes its drain", i);
        }
    }
    if (world->plan.calm && world->led_samples * 100 < world->samples * 99) {
        world_violation(world, "liveness: without any fault somebody leads only %llu of %llu times",
                        (unsigned long long)world->led_samples, (unsigned long long)world->samples);
    }
}
