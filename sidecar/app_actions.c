#include "app_internal.h"

#include "base/clock.h"
#include "base/random.h"

#include <string.h>

/* One step of a core, and what it asks for. */

static const char *const op_names[COUNTER_OP_COUNT] = {"acquire", "renew", "release"};

static enum counter_op counter_op_of(enum election_op op) {
    switch (op) {
    case OP_RENEW:
        return COUNTER_RENEW;
    case OP_RELEASE:
        return COUNTER_RELEASE;
    case OP_NONE:
    case OP_ACQUIRE:
        break;
    }
    return COUNTER_ACQUIRE;
}

static void on_timer(uv_timer_t *timer) {
    struct app_election *election = timer->data;
    app_note_lateness(election->app, election->core.wake_ns, clock_now().boot_ns);
    app_tick(election);
}

static void arm_timer(struct app_election *election, int64_t wake_ns) {
    if (wake_ns == NEVER_NS || election->app->closing) {
        uv_timer_stop(&election->timer);
        return;
    }
    int64_t left_ns = wake_ns - clock_now().boot_ns;
    /* Rounded up: a wake-up before its time would only ask for another one. */
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    uv_update_time(&election->app->loop); /* the timer counts from the cached time */
    uv_timer_start(&election->timer, on_timer, left_ms, 0);
}

void app_tick_soon(struct app_election *election) {
    if (!election->app->closing) {
        uv_timer_start(&election->timer, on_timer, 0, 0);
    }
}

static void start_operation(struct app_election *election, const struct election_actions *actions) {
    struct app *app = election->app;
    struct store_request request = {.election = election->index,
                                    .seen_token = actions->seen_token,
                                    .wait_ns = actions->wait_ns,
                                    .take = actions->take,
                                    .raise_token = actions->raise_token,
                                    .clean = actions->clean,
                                    .token = actions->token,
                                    .timeout_ns = election_attempt_ns(&app->settings)};
    memcpy(request.nonce, actions->nonce, sizeof request.nonce);
    memcpy(request.server, actions->server, sizeof request.server);
    election->op_started_ns = clock_now().boot_ns;
    switch (actions->op) {
    case OP_NONE:
        break;
    case OP_ACQUIRE:
        app->store_ops->acquire(app->store, &request);
        break;
    case OP_RENEW:
        app->store_ops->renew(app->store, &request);
        break;
    case OP_RELEASE:
        app->store_ops->release(app->store, &request);
        break;
    }
}

void app_step(struct app_election *election, struct election_event *event) {
    struct app *app = election->app;
    if (election->finished || app->closing) {
        return;
    }
    struct view before = election->core.view;
    app->stepping = true;
    event->now = clock_now();
    event->handouts = board_handouts(&app->board, &app->board.entries[election->index], event->now);
    random_bytes(event->random, sizeof event->random);
    struct election_actions actions = election_step(&election->core, event);

    app->board.entries[election->index].attached = election->core.app_attached;
    app_publish(election, &before, actions.changed); /* before the lock can change hands */
    app_tell(election, &actions);
    if (actions.op != OP_NONE) {
        start_operation(election, &actions);
    }
    arm_timer(election, actions.wake_ns);
    app->stepping = false;
    if (election->resign_asked || election->noticed) {
        app_tick_soon(election); /* the timer was armed for that too */
    }
    if (actions.resigned && app->socket != NULL) {
        socket_resigned(app->socket, election->index);
    }
    if (actions.finished) {
        app_election_finished(election, actions.left_to_lapse);
    }
}

void app_tick(struct app_election *election) {
    struct election_event event = {.type = EVENT_TICK};
    if (election->noticed) {
        election->noticed = false;
        app_notices_take(election);
    }
    if (election->resign_asked) {
        election->resign_asked = false;
        event.type = EVENT_RESIGN;
    }
    app_step(election, &event);
}

static enum counter_result result_of(enum outcome outcome) {
    switch (outcome) {
    case OUTCOME_YES:
        return RESULT_YES;
    case OUTCOME_NO:
        return RESULT_NO;
    case OUTCOME_UNSURE:
        break;
    }
    return RESULT_UNSURE;
}

static void note_reply(struct app_election *election, const struct store_event *event,
                       enum election_op op) {
    struct app *app = election->app;
    enum counter_op counter = counter_op_of(op);
    struct instant now = clock_now();
    app->counters.store_requests[counter][result_of(event->reply.outcome)]++;
    histogram_add(&app->counters.store_durations[counter],
                  (double)(now.boot_ns - election->op_started_ns) / (double)NS_PER_S);
    if (event->reply.outcome == OUTCOME_YES && op != OP_RELEASE) {
        app->counters.elections[election->index].last_renewal_real_ns = now.real_ns;
    }
    board_set_problem(&app->board.entries[election->index], event->text);
    uint64_t suppressed = 0;
    if (event->text[0] != '\0' && log_allow(&election->trouble_limit, 1000, &suppressed)) {
        enum election_reason reason = event->reply.reason;
        bool trouble = event->reply.outcome == OUTCOME_UNSURE || reason == REASON_FOREIGN_VALUE ||
                       reason == REASON_STORE_REFUSED;
        log_event(trouble ? LOG_WARN : LOG_INFO, "store",
                  LOG_TEXT("election", app->config->elections[election->index]),
                  LOG_TEXT("op", op_names[counter]),
                  LOG_TEXT("reason", election_reason_name(event->reply.reason)),
                  LOG_TEXT("problem", event->text), LOG_NUMBER("suppressed", suppressed));
    }
}

void app_store_event(void *context, const struct store_event *event) {
    struct app *app = context;
    struct app_election *election = &app->elections[event->election];
    struct election_event step = {.reply = event->reply, .clean = event->clean};
    switch (event->type) {
    case STORE_ACQUIRED:
        step.type = EVENT_ACQUIRED;
        note_reply(election, event, OP_ACQUIRE);
        break;
    case STORE_RENEWED:
        step.type = EVENT_RENEWED;
        note_reply(election, event, OP_RENEW);
        break;
    case STORE_RELEASED:
        step.type = EVENT_RELEASED;
        note_reply(election, event, OP_RELEASE);
        break;
    case STORE_WAKE:
        step.type = EVENT_WAKE;
        break;
    case STORE_LOST:
        step.type = EVENT_LOST;
        break;
    }
    app_step(election, &step);
}
