#include "driver.h"

#include <string.h>

#define MOST_WAKES 1000

void driver_config(struct driver *driver) {
    memset(driver, 0, sizeof *driver);
    driver->config = (struct election_config){.ttl_ns = 10 * S,
                                              .margin_ns = 2 * S,
                                              .valid_for_ns = 2 * S,
                                              .drain_ns = 10 * S,
                                              .identity = "pod-a"};
    driver->now = (struct instant){.boot_ns = 1000 * S, .real_ns = 1800000000 * S};
    driver->server = SERVER_A;
    driver->server_ahead_us = 1800000000000000;
    driver->next_token = 5000;
    driver->first_index = 640; /* it asks a third of the ttl after the start */
    driver->seed = 1;
}

uint64_t driver_random(struct driver *driver) {
    driver->seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = driver->seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t driver_server_now_us(const struct driver *driver) {
    return driver->now.boot_ns / NS_PER_US + driver->server_ahead_us;
}

void driver_pass(struct driver *driver, int64_t ns) {
    driver->now.boot_ns += ns;
    driver->now.real_ns += ns;
}

static uint64_t visible_token(const struct view *view) {
    return view->state == STATE_LEADER ? view->token : 0;
}

/* A change of state follows the table, and the index counts what readers can see. */
static void check_view(struct driver *driver, const struct view *before) {
    const struct view *view = &driver->election.view;
    if (view->state != before->state) {
        assert_non_null(election_transition_find(before->state, view->state));
        driver->seen[before->state][view->state]++;
        assert_int_equal(view->since_real_ns, driver->now.real_ns);
    } else {
        assert_int_equal(view->since_real_ns, before->since_real_ns);
    }
    bool differs = view->state != before->state || strcmp(view->holder, before->holder) != 0 ||
                   visible_token(view) != visible_token(before);
    assert_int_equal(driver->last.changed, differs);
    assert_int_equal(view->index, before->index + (differs ? 1 : 0));
    assert_string_not_equal(view->holder, driver->config.identity);
    if (view->state != STATE_FOLLOWER) {
        assert_string_equal(view->holder, "");
    }
}

/* One operation at a time, and never a wake-up that has passed already while nothing is asked. */
static void check_actions(struct driver *driver) {
    const struct election_actions *actions = &driver->last;
    if (actions->op != OP_NONE) {
        assert_int_equal(driver->op, OP_NONE);
        driver->op = actions->op;
        driver->asked = *actions;
        driver->sent = driver->now;
    }
    assert_int_equal(driver->election.op, driver->op);
    if (driver->op == OP_NONE && !actions->finished) {
        assert_true(actions->wake_ns > driver->now.boot_ns);
        assert_true(actions->wake_ns < NEVER_NS);
    }
    if (actions->finished) {
        assert_int_equal(actions->op, OP_NONE);
        assert_true(actions->wake_ns == NEVER_NS);
    }
    assert_false(actions->left_to_lapse && !actions->finished);
}

/* Only a leader inside both deadlines is told to be one, and never for longer than it is good. */
static void check_readers(const struct driver *driver) {
    struct handouts handouts = driver->handouts; /* nobody really asks here */
    const struct view *view = &driver->election.view;
    struct answer answer = view_answer(view, driver->now, &handouts);
    if (!answer.leader) {
        assert_int_equal(answer.token, 0);
        assert_int_equal(answer.valid_ns, 0);
        assert_int_equal(answer.deadline_ns, 0);
        return;
    }
    assert_int_equal(view->state, STATE_LEADER);
    assert_int_equal(driver->election.grant, GRANT_HELD);
    assert_true(answer.token > 0 && answer.token <= TOKEN_MAX);
    assert_true(answer.deadline_ns <= view->lease.boot_deadline_ns);
    assert_true(driver->now.real_ns + answer.valid_ns <= view->lease.real_deadline_ns);
    assert_true(answer.valid_ns <= driver->config.valid_for_ns);
}

struct election_actions driver_step(struct driver *driver, struct election_event event) {
    event.now = driver->now;
    event.handouts = driver->handouts;
    for (size_t i = 0; i < RANDOM_BYTES; i += sizeof(uint64_t)) {
        uint64_t number = driver_random(driver);
        memcpy(event.random + i, &number, sizeof number);
    }
    struct view before = driver->election.view;
    driver->last = election_step(&driver->election, &event);
    if (driver->last.app_stopped) {
        driver->handouts.app_until_ns = 0;
    }
    check_view(driver, &before);
    check_actions(driver);
    check_readers(driver);
    return driver->last;
}

struct election_actions driver_event(struct driver *driver, enum election_event_type type) {
    return driver_step(driver, (struct election_event){.type = type});
}

struct election_actions driver_tick(struct driver *driver) {
    return driver_event(driver, EVENT_TICK);
}

struct election_actions driver_app(struct driver *driver, enum app_event app, uint64_t token) {
    return driver_step(driver,
                       (struct election_event){.type = EVENT_APP, .app = app, .token = token});
}

struct election_actions driver_wake(struct driver *driver, bool clean) {
    return driver_step(driver, (struct election_event){.type = EVENT_WAKE, .clean = clean});
}

void driver_start(struct driver *driver) {
    election_init(&driver->election, &driver->config, driver->first_index, driver->now);
    driver_tick(driver);
    assert_int_equal(driver->op, OP_ACQUIRE);
}

struct election_actions driver_sleep_to_op(struct driver *driver) {
    assert_int_equal(driver->op, OP_NONE);
    for (int i = 0; i < MOST_WAKES && driver->op == OP_NONE; i++) {
        driver_pass(driver, driver->last.wake_ns - driver->now.boot_ns);
        driver_tick(driver);
    }
    assert_int_not_equal(driver->op, OP_NONE);
    return driver->last;
}

void driver_sleep_until(struct driver *driver, int64_t boot_ns) {
    int wakes = 0;
    while (driver->last.wake_ns <= boot_ns) {
        assert_true(wakes++ < MOST_WAKES);
        driver_pass(driver, driver->last.wake_ns - driver->now.boot_ns);
        driver_tick(driver);
    }
    driver_pass(driver, boot_ns - driver->now.boot_ns);
}

static struct store_reply reply_known(const struct driver *driver, enum outcome outcome) {
    struct store_reply reply = {.outcome = outcome,
                                .sent = driver->sent,
                                .longest_ttl_ns = driver->config.ttl_ns,
                                .server_now_us = driver_server_now_us(driver)};
    memcpy(reply.server, driver->server, strlen(driver->server));
    return reply;
}

struct store_reply reply_unsure(const struct driver *driver) {
    return (struct store_reply){
        .outcome = OUTCOME_UNSURE, .reason = REASON_STORE_UNREACHABLE, .sent = driver->sent};
}

struct store_reply reply_yes(const struct driver *driver, enum prior prior) {
    struct store_reply reply = reply_known(driver, OUTCOME_YES);
    bool mints = driver->op == OP_ACQUIRE || driver->asked.raise_token;
    reply.token = mints ? driver->next_token : driver->election.view.token;
    reply.prior = prior;
    return reply;
}

struct store_reply reply_no(const struct driver *driver) {
    struct store_reply reply = reply_known(driver, OUTCOME_NO);
    reply.token = driver->next_token - 1;
    reply.reason = REASON_HELD_BY_OTHER;
    return reply;
}

struct store_reply reply_held(const struct driver *driver, const char *holder) {
    struct store_reply reply = reply_no(driver);
    reply.held = true;
    reply.holder_nonce_known = true;
    memset(reply.holder_nonce, 0xb5, NONCE_BYTES);
    reply.expires_in_ns = driver->config.ttl_ns;
    memcpy(reply.holder, holder, strlen(holder));
    return reply;
}

struct election_actions driver_answer(struct driver *driver, struct store_reply reply) {
    static const enum election_event_type answers[] = {
        [OP_ACQUIRE] = EVENT_ACQUIRED, [OP_RENEW] = EVENT_RENEWED, [OP_RELEASE] = EVENT_RELEASED};
    assert_int_not_equal(driver->op, OP_NONE);
    enum election_event_type type = answers[driver->op];
    bool mints = driver->op == OP_ACQUIRE || driver->asked.raise_token;
    if (mints && reply.outcome == OUTCOME_YES && reply.token >= driver->next_token) {
        driver->next_token = reply.token + 1;
    }
    driver->op = OP_NONE;
    return driver_step(driver, (struct election_event){.type = type, .reply = reply});
}

struct election_actions driver_yes(struct driver *driver) {
    driver_pass(driver, 1 * MS);
    return driver_answer(driver, reply_yes(driver, PRIOR_NONE));
}

struct election_actions driver_unsure(struct driver *driver) {
    driver_pass(driver, 1 * MS);
    return driver_answer(driver, reply_unsure(driver));
}

struct election_actions driver_held(struct driver *driver) {
    driver_pass(driver, 1 * MS);
    return driver_answer(driver, reply_held(driver, "pod-b"));
}

void driver_lead(struct driver *driver) {
    driver_start(driver);
    driver_pass(driver, 1 * MS);
    driver_answer(driver, reply_yes(driver, PRIOR_CLEAN));
    assert_state(driver, STATE_LEADER);
}

void driver_pend(struct driver *driver) {
    driver_start(driver);
    driver_yes(driver);
    assert_state(driver, STATE_PENDING);
}

void driver_follow(struct driver *driver, int64_t expires_ns) {
    driver_start(driver);
    driver_pass(driver, 1 * MS);
    struct store_reply reply = reply_held(driver, "pod-b");
    reply.expires_in_ns = expires_ns;
    driver_answer(driver, reply);
    assert_state(driver, STATE_FOLLOWER);
}

void driver_watch(struct driver *driver, int64_t ns) {
    driver_follow(driver, driver->config.ttl_ns);
    int64_t until_ns = driver->now.boot_ns + ns;
    while (driver->now.boot_ns < until_ns) {
        driver_sleep_to_op(driver);
        driver_held(driver);
    }
}

struct answer driver_ask(struct driver *driver) {
    return view_answer(&driver->election.view, driver->now, &driver->handouts);
}
