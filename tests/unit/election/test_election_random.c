#include "driver.h"

#include <string.h>

/*
 * Long random lives from a seed: answers of every kind, steps of every clock, stalls, hints,
 * resignations and drains. The driver's own checks hold after each step (one operation at a time,
 * only legal changes, no wake-up in the past, no answer past a deadline); so do those below.
 */

#define SEEDS 400
#define EVENTS 1500

/* One life of a process, with what is known of its newest grant. */
struct life {
    struct driver driver;
    unsigned char nonce[NONCE_BYTES];
    bool confirmed;          /* the store said yes to it */
    int64_t confirmed_ns;    /* when that arrived */
    bool led;                /* it has led */
    bool proven;             /* ... and no older lease could be trusted by then */
    bool attached;           /* applications come and go */
    bool unsure;             /* the newest answer to its acquire was none */
    int64_t stand_back_ns;   /* until then it only looks */
    uint64_t greatest_token; /* ever shown */
};

static unsigned seen[STATE_COUNT][STATE_COUNT];

static bool chance(struct life *life, unsigned in_thousand) {
    return driver_random(&life->driver) % 1000 < in_thousand;
}

static int64_t below(struct life *life, int64_t limit) {
    return (int64_t)(driver_random(&life->driver) % (uint64_t)limit);
}

static void start_life(struct life *life, uint64_t seed) {
    memset(life, 0, sizeof *life);
    driver_config(&life->driver);
    life->driver.seed = seed * 1000003;
    struct election_config *config = &life->driver.config;
    config->ttl_ns = 300 * MS + below(life, 20 * S);
    config->margin_ns = config->ttl_ns / 5;
    config->valid_for_ns = 100 * MS + below(life, config->ttl_ns);
    config->drain_ns = below(life, 2 * config->ttl_ns);
    config->wait_floor_ns = chance(life, 300) ? below(life, 3 * config->ttl_ns) : 0;
    config->poll_ns = chance(life, 300) ? 250 * MS : 0;
    config->drain_none = chance(life, 300);
    config->efficiency = chance(life, 300);
    config->step_down = chance(life, 300);
    life->attached = chance(life, 500);
    driver_start(&life->driver);
    memcpy(life->nonce, life->driver.asked.nonce, NONCE_BYTES);
}

static void check_acquire(struct life *life) {
    const struct election_actions *asked = &life->driver.asked;
    bool stands_back = life->driver.now.boot_ns < life->stand_back_ns;
    assert_true(life->attached || asked->take == !stands_back);
    assert_int_equal(asked->wait_ns, election_wait_ns(&life->driver.election));
    bool same = memcmp(life->nonce, asked->nonce, NONCE_BYTES) == 0;
    assert_int_equal(same, life->unsure);
    if (!same) {
        memcpy(life->nonce, asked->nonce, NONCE_BYTES);
        life->confirmed = false;
        life->led = false;
        life->proven = false;
    }
}

/* P4: nothing that was handed out still runs; and the mark is only for those who may have it. */
static void check_release(const struct life *life) {
    const struct driver *driver = &life->driver;
    int64_t now_ns = driver->now.boot_ns;
    bool stopped = driver->config.drain_none && driver->election.leaving == LEAVING_EXIT;
    assert_true(stopped || now_ns >= driver->handouts.until_ns);
    if (driver->asked.clean) {
        assert_memory_equal(driver->asked.nonce, life->nonce, NONCE_BYTES);
        assert_true(life->confirmed);
        int64_t waited_ns = now_ns - life->confirmed_ns;
        assert_true(life->proven || waited_ns >= election_wait_ns(&driver->election));
    }
}

static void check_operation(struct life *life) {
    switch (life->driver.last.op) {
    case OP_ACQUIRE:
        check_acquire(life);
        break;
    case OP_RENEW:
        assert_memory_equal(life->driver.asked.nonce, life->nonce, NONCE_BYTES);
        assert_true(life->confirmed);
        break;
    case OP_RELEASE:
        check_release(life);
        break;
    case OP_NONE:
        return;
    }
    life->unsure = false;
}

/* A token is shown by one grant only, and each later grant's is greater. */
static void check_token(struct life *life) {
    const struct view *view = &life->driver.election.view;
    if (life->led) {
        assert_int_equal(view->token, life->greatest_token);
    } else {
        assert_true(view->token > life->greatest_token);
        life->greatest_token = view->token;
    }
}

/* How a grant came to lead: no older lease could be trusted, or it was waited for. */
static void check_leader(struct life *life, const struct election_actions *asked,
                         enum election_state was, int64_t sent_ns) {
    const struct driver *driver = &life->driver;
    if (driver->election.view.state != STATE_LEADER) {
        return;
    }
    assert_true(life->confirmed);
    check_token(life);
    if (life->led) {
        return;
    }
    life->led = true;
    if (asked->op == OP_ACQUIRE) {
        life->proven = driver->election.view.doubt == DOUBT_NONE;
        assert_true(life->proven || driver->config.efficiency);
        return;
    }
    assert_int_equal(was, STATE_PENDING);
    assert_true(asked->raise_token);
    assert_true(sent_ns - life->confirmed_ns >= election_wait_ns(&driver->election));
    life->proven = true;
}

static void after_step(struct life *life) {
    const struct driver *driver = &life->driver;
    if (driver->last.resigned && !driver->last.finished) {
        life->stand_back_ns = driver->now.boot_ns + election_wait_ns(&driver->election);
    }
    check_operation(life);
}

static struct store_reply random_reply(struct life *life) {
    struct driver *driver = &life->driver;
    int64_t ttl_ns = driver->config.ttl_ns;
    if (chance(life, 200)) {
        struct store_reply unsure = reply_unsure(driver);
        unsure.reason = chance(life, 500) ? REASON_STORE_REFUSED : REASON_STORE_UNREACHABLE;
        return unsure;
    }
    driver->server = chance(life, 5) ? "" : chance(life, 990) ? SERVER_A : SERVER_B;
    driver->server_ahead_us += chance(life, 5) ? below(life, 4000000) - 2000000 : 0;
    struct store_reply reply;
    if (chance(life, driver->op == OP_ACQUIRE ? 500 : 900)) {
        reply = reply_yes(driver, (enum prior)below(life, 3));
        reply.prior_end_us = reply.server_now_us - below(life, 2 * ttl_ns) / NS_PER_US + 500000;
        reply.token = chance(life, 10) ? TOKEN_MAX + 1 : reply.token;
        reply.token -= chance(life, 10) ? 1 : 0;
        reply.token = chance(life, 10) ? 0 : reply.token;
    } else {
        const char *const holders[] = {"pod-b", "pod-c", "pod-a", "?", ""};
        reply = chance(life, 200) ? reply_no(driver) : reply_held(driver, holders[below(life, 5)]);
        reply.expires_in_ns = chance(life, 200) ? -1 : below(life, ttl_ns);
        reply.reason = chance(life, 50) ? REASON_FOREIGN_VALUE : REASON_HELD_BY_OTHER;
        if (reply.held && chance(life, 100)) {
            const unsigned char *ended = driver->election.ended[below(life, ENDED_NONCES)];
            memcpy(reply.holder_nonce, ended, NONCE_BYTES);
        }
    }
    reply.longest_ttl_ns = chance(life, 10) ? below(life, 2 * ttl_ns) : ttl_ns;
    reply.warnings =
        (uint32_t)below(life, 1 << WARNING_COUNT) & ~(uint32_t)WARNING_IDENTITY_NOT_UNIQUE;
    return reply;
}

static void random_answer(struct life *life) {
    struct driver *driver = &life->driver;
    struct store_reply reply = random_reply(life);
    struct election_actions asked = driver->asked;
    enum election_state was = driver->election.view.state;
    if (asked.op == OP_ACQUIRE && reply.outcome == OUTCOME_YES) {
        life->confirmed = true;
        life->confirmed_ns = driver->now.boot_ns;
    }
    life->unsure = asked.op == OP_ACQUIRE && asked.take && reply.outcome == OUTCOME_UNSURE;
    driver_answer(driver, reply);
    check_leader(life, &asked, was, reply.sent.boot_ns);
    after_step(life);
}

static void random_time(struct life *life) {
    struct driver *driver = &life->driver;
    int64_t ttl_ns = driver->config.ttl_ns;
    if (chance(life, 20)) {
        driver->now.real_ns += below(life, 4 * ttl_ns) - 2 * ttl_ns;
    }
    if (chance(life, 15)) {
        driver_pass(driver, below(life, 3 * ttl_ns)); /* a stall */
    } else if (driver->op != OP_NONE) {
        driver_pass(driver, below(life, chance(life, 900) ? ttl_ns / 100 : ttl_ns / 6));
    } else if (chance(life, 800) && driver->last.wake_ns != NEVER_NS) {
        int64_t to_wake_ns = driver->last.wake_ns - driver->now.boot_ns;
        driver_pass(driver, to_wake_ns > 0 ? to_wake_ns : 0);
    }
    if (chance(life, 300)) {
        driver_ask(driver);
    }
}

static void random_event(struct life *life) {
    struct driver *driver = &life->driver;
    random_time(life);
    if (driver->op != OP_NONE && chance(life, 800)) {
        random_answer(life);
        return;
    }
    unsigned kind = (unsigned)below(life, 1000);
    if (kind < 40) {
        driver_wake(driver, chance(life, 500));
    } else if (kind < 50) {
        driver_step(driver, (struct election_event){.type = EVENT_LOST,
                                                    .reply = {.outcome = OUTCOME_NO,
                                                              .reason = REASON_RENEWAL_REFUSED}});
    } else if (kind < 70) {
        driver_event(driver, EVENT_RESIGN);
    } else if (kind < 73) {
        driver_event(driver, EVENT_DRAIN);
    } else if (kind < 150 && life->attached) {
        enum app_event event = (enum app_event)below(life, APP_UNHEALTHY + 1);
        driver_app(driver, event, driver->election.app_token);
    } else {
        driver_tick(driver);
    }
    after_step(life);
}

static void no_life_breaks_a_rule(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct life life;
        start_life(&life, seed);
        int after_end = 0;
        for (int i = 0; i < EVENTS && after_end < 20; i++) {
            random_event(&life);
            after_end += life.driver.last.finished;
        }
        for (int from = 0; from < STATE_COUNT; from++) {
            for (int to = 0; to < STATE_COUNT; to++) {
                seen[from][to] += life.driver.seen[from][to];
            }
        }
    }
}

/* The table promises nothing that does not happen. */
static void every_legal_change_happens(void **state) {
    (void)state;
    for (size_t i = 0; i < election_transition_count; i++) {
        const struct election_transition *row = &election_transitions[i];
        if (seen[row->from][row->to] == 0) {
            fail_msg("never seen: %s to %s", election_state_name(row->from),
                     election_state_name(row->to));
        }
    }
}

/* Whatever an operation answers, a candidate that is left alone asks again, and not in a hurry. */
static void left_alone_it_asks_at_a_calm_rate(void **state) {
    (void)state;
    for (int outcome = OUTCOME_UNSURE; outcome <= OUTCOME_NO; outcome++) {
        struct driver driver;
        driver_config(&driver);
        driver_start(&driver);
        int64_t start_ns = driver.now.boot_ns;
        int operations = 0;
        while (driver.now.boot_ns - start_ns < 60 * S) {
            if (driver.op == OP_NONE) {
                driver_sleep_to_op(&driver);
            }
            operations++;
            driver_pass(&driver, 1 * MS);
            driver_answer(&driver, outcome == OUTCOME_YES  ? reply_yes(&driver, PRIOR_CLEAN)
                                   : outcome == OUTCOME_NO ? reply_held(&driver, "pod-b")
                                                           : reply_unsure(&driver));
        }
        assert_in_range(operations, 18, outcome == OUTCOME_UNSURE ? 250 : 25);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_life_breaks_a_rule),
        cmocka_unit_test(every_legal_change_happens),
        cmocka_unit_test(left_alone_it_asks_at_a_calm_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
