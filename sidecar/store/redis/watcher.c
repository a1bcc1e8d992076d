#include "store/redis/watcher.h"

#include "base/random.h"
#include "store/redis/command.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <string.h>

#define BUDGET_NS NS_PER_S
#define ANSWER_MS 1000
#define STAY_MS 8000 /* at one Sentinel; less by up to a half */
#define BACKOFF_MOST_NS (2 * NS_PER_S)
#define LOG_EVERY_MS 60000

static const char switched[] = "+switch-master";
/* The Sentinel that leads a failover has a new master from here on, but says so only when all
 * replicas have followed. */
static const char promoted[] = "+failover-state-reconf-slaves";

static void on_timer(uv_timer_t *timer);

static void arm(struct redis_watcher *watcher, uint64_t after_ms) {
    uv_update_time(watcher->setup.gate.loop);
    (void)uv_timer_start(&watcher->timer, on_timer, after_ms, 0);
}

static void drop(struct redis_watcher *watcher) {
    if (watcher->stream != NULL) {
        redis_stream_close(watcher->stream);
        watcher->stream = NULL;
    }
}

/* Asks the current Sentinel, then listens to it. */
static void ask(struct redis_watcher *watcher) {
    struct redis_sentinels *sentinels = watcher->setup.sentinels;
    drop(watcher);
    (void)uv_timer_stop(&watcher->timer);
    watcher->state = REDIS_WATCHER_CONNECTING;
    redis_gate_aim(&watcher->gate, &sentinels->resolvers[watcher->current]);
    redis_gate_start(&watcher->gate, BUDGET_NS);
}

static void go_on(struct redis_watcher *watcher) {
    size_t count = watcher->setup.sentinels->url->sentinel_count;
    watcher->current = (watcher->current + 1) % count;
    ask(watcher);
}

static void pause_for(struct redis_watcher *watcher, const char *why) {
    uint64_t suppressed = 0;
    drop(watcher);
    watcher->state = REDIS_WATCHER_PAUSING;
    if (log_allow(&watcher->log_limit, LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_INFO, "store-not-watching", LOG_TEXT("why", why),
                  LOG_NUMBER("suppressed", suppressed));
    }
    arm(watcher,
        (uint64_t)(redis_backoff_fail(&watcher->backoff, BACKOFF_MOST_NS) / NS_PER_MS + 1));
}

static void on_timer(uv_timer_t *timer) {
    struct redis_watcher *watcher = timer->data;
    if (watcher->state == REDIS_WATCHER_ASKING) {
        pause_for(watcher, "SUBSCRIBE: no answer of the Sentinel in time");
    } else {
        go_on(watcher);
    }
}

static bool is_text(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

static void on_confirmed(struct redis_watcher *watcher) {
    uint32_t random = 0;
    random_bytes(&random, sizeof random);
    watcher->state = REDIS_WATCHER_LISTENING;
    watcher->backoff.failures = 0;
    arm(watcher, STAY_MS - random % (STAY_MS / 2));
}

/* "master NAME HOST PORT". */
static bool is_about(const char *text, const char *name) {
    static const char kind[] = "master ";
    size_t length = strlen(name);
    return strncmp(text, kind, strlen(kind)) == 0 &&
           strncmp(text + strlen(kind), name, length) == 0 && text[strlen(kind) + length] == ' ';
}

static void on_message(struct redis_watcher *watcher, const redisReply *about, const char *text) {
    const char *name = watcher->setup.sentinels->url->master;
    struct redis_master master;
    if (is_text(about, promoted)) {
        if (is_about(text, name)) {
            ask(watcher);
        }
    } else if (redis_master_read_switch(text, name, &master)) {
        watcher->setup.told(watcher->setup.context, &master, watcher->current, false);
    }
}

static void on_reply(void *context, const redisReply *reply) {
    struct redis_watcher *watcher = context;
    char text[REDIS_GATE_TEXT];
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_failure_text(text, sizeof text, reply->str, reply->len);
        pause_for(watcher, text);
    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) {
        pause_for(watcher, "a message of a strange shape from a Sentinel");
    } else if (is_text(reply->element[0], "message") &&
               reply->element[2]->type == REDIS_REPLY_STRING) {
        on_message(watcher, reply->element[1], reply->element[2]->str);
    } else if (is_text(reply->element[0], "subscribe")) {
        on_confirmed(watcher);
    } else {
        pause_for(watcher, "a message of a strange kind from a Sentinel");
    }
}

static void on_down(void *context, const char *why) {
    pause_for(context, why);
}

static const struct redis_stream_events stream_events = {.on_reply = on_reply, .on_down = on_down};

static void on_gate_open(void *context, struct redis_stream *stream, uint32_t warnings) {
    struct redis_watcher *watcher = context;
    const char *subscribe[] = {"SUBSCRIBE", switched, promoted};
    struct redis_command command = redis_command(3, subscribe);
    (void)warnings;
    watcher->stream = stream;
    watcher->state = REDIS_WATCHER_ASKING;
    redis_stream_own(stream, &stream_events, watcher);
    if (redis_stream_send(stream, command.bytes, command.size)) {
        arm(watcher, ANSWER_MS);
    } else {
        pause_for(watcher, "the connection to a Sentinel broke");
    }
    struct redis_master master = watcher->gate.handshake.master;
    watcher->setup.told(watcher->setup.context, &master, watcher->current, true);
}

static void on_gate_failed(void *context, enum redis_gate_end end, const char *text) {
    (void)end;
    pause_for(context, text);
}

void redis_watcher_init(struct redis_watcher *watcher, const struct redis_watcher_setup *setup) {
    uint32_t random = 0;
    random_bytes(&random, sizeof random);
    memset(watcher, 0, sizeof *watcher);
    watcher->setup = *setup;
    watcher->current = random % setup->sentinels->url->sentinel_count;
    struct redis_gate_setup *gate = &watcher->setup.gate;
    gate->resolver = &setup->sentinels->resolvers[0];
    gate->requests = false;
    gate->sentinel = true;
    gate->on_open = on_gate_open;
    gate->on_failed = on_gate_failed;
    gate->context = watcher;
    redis_gate_init(&watcher->gate, gate);
    (void)uv_timer_init(gate->loop, &watcher->timer);
    watcher->timer.data = watcher;
    store_lives_begin(gate->lives);
}

void redis_watcher_start(struct redis_watcher *watcher) {
    if (watcher->state == REDIS_WATCHER_IDLE) {
        go_on(watcher);
    }
}

static void on_timer_closed(uv_handle_t *handle) {
    struct redis_watcher *watcher = handle->data;
    store_lives_end(watcher->setup.gate.lives);
}

void redis_watcher_close(struct redis_watcher *watcher) {
    redis_gate_close(&watcher->gate);
    drop(watcher);
    uv_close((uv_handle_t *)&watcher->timer, on_timer_closed);
}
