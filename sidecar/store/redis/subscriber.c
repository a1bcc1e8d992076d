#include "store/redis/subscriber.h"

#include "base/memory.h"
#include "store/redis/command.h"
#include "store/redis/failure.h"
#include "store/redis/release.h"

#include <stdlib.h>
#include <string.h>

#define BUDGET_LEAST_NS (500 * NS_PER_MS)
#define BACKOFF_MOST_NS (5 * NS_PER_S)
#define DENIED_PAUSE_MS 60000
#define AUTH_PAUSE_MS 2000
#define CHECK_EVERY_MS 10000
#define LOG_EVERY_MS 60000

static void on_timer(uv_timer_t *timer);

static void arm(struct redis_subscriber *subscriber, int64_t after_ms) {
    uv_update_time(subscriber->setup.gate.loop);
    (void)uv_timer_start(&subscriber->timer, on_timer, (uint64_t)after_ms, 0);
}

bool redis_subscriber_is_settled(const struct redis_subscriber *subscriber) {
    return subscriber->state != REDIS_SUBSCRIBER_CONNECTING &&
           subscriber->state != REDIS_SUBSCRIBER_ASKING;
}

static void give_up(struct redis_subscriber *subscriber, enum redis_subscriber_state state,
                    int64_t pause_ms, const char *why) {
    uint64_t suppressed = 0;
    if (subscriber->stream != NULL) {
        redis_stream_close(subscriber->stream);
        subscriber->stream = NULL;
    }
    subscriber->state = state;
    if (log_allow(&subscriber->log_limit, LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_INFO, "store-not-listening", LOG_TEXT("why", why),
                  LOG_NUMBER("suppressed", suppressed));
    }
    arm(subscriber, pause_ms);
    subscriber->setup.settled(subscriber->setup.context);
}

static void pause_for(struct redis_subscriber *subscriber, const char *why) {
    int64_t pause_ns = redis_backoff_fail(&subscriber->backoff, BACKOFF_MOST_NS);
    give_up(subscriber, REDIS_SUBSCRIBER_PAUSING, pause_ns / NS_PER_MS + 1, why);
}

/* Not to be tried again soon, whatever else happens. */
static void deny(struct redis_subscriber *subscriber, int64_t pause_ms, const char *why) {
    give_up(subscriber, REDIS_SUBSCRIBER_DENIED, pause_ms, why);
}

static void connect_now(struct redis_subscriber *subscriber) {
    subscriber->state = REDIS_SUBSCRIBER_CONNECTING;
    (void)uv_timer_stop(&subscriber->timer);
    redis_route_start(&subscriber->route, subscriber->budget_ns);
}

/* SUBSCRIBE to the first `count` channels. */
static bool ask(struct redis_subscriber *subscriber, size_t count) {
    char **arguments = memory_zeroed(count + 1, sizeof *arguments);
    arguments[0] = memory_text("SUBSCRIBE");
    for (size_t i = 0; i < count; i++) {
        struct redis_names names;
        (void)redis_names_init(
            &names, subscriber->setup.namespace_,
            subscriber->setup.elections[i]); /* the store has seen that it fits */
        arguments[i + 1] = memory_text(names.channel);
    }
    struct redis_command command = redis_command(count + 1, (const char *const *)arguments);
    for (size_t i = 0; i <= count; i++) {
        free(arguments[i]);
    }
    free(arguments);
    return redis_stream_send(subscriber->stream, command.bytes, command.size);
}

static void on_timer(uv_timer_t *timer) {
    struct redis_subscriber *subscriber = timer->data;
    if (subscriber->state == REDIS_SUBSCRIBER_PAUSING ||
        subscriber->state == REDIS_SUBSCRIBER_DENIED) {
        connect_now(subscriber);
    } else if (subscriber->state == REDIS_SUBSCRIBER_LISTENING && !subscriber->checking) {
        /* Asking again for what it has already is answered, and changes nothing. */
        subscriber->checking = true;
        if (ask(subscriber, 1)) {
            arm(subscriber, subscriber->budget_ns / NS_PER_MS + 1);
        } else {
            pause_for(subscriber, "the connection broke");
        }
    } else {
        pause_for(subscriber, "SUBSCRIBE: no answer in time");
    }
}

static void on_confirmed(struct redis_subscriber *subscriber) {
    if (subscriber->state == REDIS_SUBSCRIBER_LISTENING) {
        subscriber->checking = false;
        arm(subscriber, CHECK_EVERY_MS);
        return;
    }
    subscriber->confirmed++;
    if (subscriber->confirmed == subscriber->setup.count) {
        subscriber->state = REDIS_SUBSCRIBER_LISTENING;
        subscriber->backoff.failures = 0;
        arm(subscriber, CHECK_EVERY_MS);
        subscriber->setup.settled(subscriber->setup.context);
    }
}

static bool is_text(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(text) &&
           memcmp(reply->str, text, reply->len) == 0;
}

static void on_message(struct redis_subscriber *subscriber, const redisReply *reply) {
    struct redis_release release;
    if (!redis_release_read(reply, subscriber->setup.namespace_, &release)) {
        return;
    }
    for (size_t i = 0; i < subscriber->setup.count; i++) {
        const char *election = subscriber->setup.elections[i];
        if (strlen(election) == release.length &&
            memcmp(election, release.election, release.length) == 0) {
            subscriber->setup.on_release(subscriber->setup.context, i, &release);
            return;
        }
    }
}

static void on_error(struct redis_subscriber *subscriber, const redisReply *reply) {
    char text[REDIS_GATE_TEXT];
    redis_failure_text(text, sizeof text, reply->str, reply->len);
    if (redis_failure_of(reply->str) == REDIS_FAILURE_DENIED) {
        deny(subscriber, DENIED_PAUSE_MS, text);
    } else {
        pause_for(subscriber, text);
    }
}

static void on_reply(void *context, const redisReply *reply) {
    struct redis_subscriber *subscriber = context;
    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(subscriber, reply);
    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) {
        pause_for(subscriber, "a message of a strange shape");
    } else if (is_text(reply->element[0], "message") &&
               reply->element[2]->type == REDIS_REPLY_STRING) {
        on_message(subscriber, reply);
    } else if (is_text(reply->element[0], "subscribe") &&
               reply->element[2]->type == REDIS_REPLY_INTEGER) {
        on_confirmed(subscriber);
    } else {
        pause_for(subscriber, "a message of a strange kind");
    }
}

static void on_down(void *context, const char *why) {
    pause_for(context, why);
}

static const struct redis_stream_events stream_events = {.on_reply = on_reply, .on_down = on_down};

static void on_gate_open(void *context, struct redis_stream *stream, uint32_t warnings) {
    struct redis_subscriber *subscriber = context;
    (void)warnings;
    subscriber->stream = stream;
    subscriber->state = REDIS_SUBSCRIBER_ASKING;
    subscriber->confirmed = 0;
    subscriber->checking = false;
    redis_stream_own(stream, &stream_events, subscriber);
    if (ask(subscriber, subscriber->setup.count)) {
        arm(subscriber, subscriber->budget_ns / NS_PER_MS + 1);
    } else {
        pause_for(subscriber, "the connection broke");
    }
}

static void on_gate_failed(void *context, enum redis_gate_end end, const char *text) {
    if (end == REDIS_GATE_AUTH) {
        deny(context, AUTH_PAUSE_MS, text);
    } else {
        pause_for(context, text);
    }
}

void redis_subscriber_init(struct redis_subscriber *subscriber,
                           const struct redis_subscriber_setup *setup) {
    memset(subscriber, 0, sizeof *subscriber);
    subscriber->setup = *setup;
    subscriber->setup.gate.on_open = on_gate_open;
    subscriber->setup.gate.on_failed = on_gate_failed;
    subscriber->setup.gate.context = subscriber;
    subscriber->setup.gate.requests = false;
    redis_route_init(&subscriber->route, &subscriber->setup.gate, setup->sentinels);
    (void)uv_timer_init(setup->gate.loop, &subscriber->timer);
    subscriber->timer.data = subscriber;
    store_lives_begin(setup->gate.lives);
}

void redis_subscriber_kick(struct redis_subscriber *subscriber, int64_t budget_ns) {
    if (budget_ns > 0) {
        subscriber->budget_ns = budget_ns > BUDGET_LEAST_NS ? budget_ns : BUDGET_LEAST_NS;
    }
    if (subscriber->state == REDIS_SUBSCRIBER_IDLE ||
        subscriber->state == REDIS_SUBSCRIBER_PAUSING) {
        connect_now(subscriber);
    }
}

void redis_subscriber_move(struct redis_subscriber *subscriber) {
    if (subscriber->state == REDIS_SUBSCRIBER_IDLE ||
        subscriber->state == REDIS_SUBSCRIBER_DENIED) {
        return;
    }
    redis_route_cancel(&subscriber->route);
    if (subscriber->stream != NULL) {
        redis_stream_close(subscriber->stream);
        subscriber->stream = NULL;
    }
    connect_now(subscriber);
}

static void on_timer_closed(uv_handle_t *handle) {
    struct redis_subscriber *subscriber = handle->data;
    store_lives_end(subscriber->setup.gate.lives);
}

void redis_subscriber_close(struct redis_subscriber *subscriber) {
    redis_route_close(&subscriber->route);
    if (subscriber->stream != NULL) {
        redis_stream_close(subscriber->stream);
        subscriber->stream = NULL;
    }
    uv_close((uv_handle_t *)&subscriber->timer, on_timer_closed);
}
