#include "store/redis/link.h"

#include "base/clock.h"
#include "base/random.h"
#include "store/redis/barrier.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A connection may take longer to make than one short request may take: the next one finds it. */
#define BUDGET_LEAST_NS (200 * NS_PER_MS)
#define BUDGET_LEAST_SENTINELS_NS NS_PER_S /* several are asked before */
#define AUTH_PAUSE_NS NS_PER_S
/* A timer that comes later than this was held up, and so were the replies. */
#define LATE_NS (20 * NS_PER_MS)
#define LOG_EVERY_MS 10000
#define MOVE_JITTER_MS 100 /* not all at once upon a new master */

static void arm(struct redis_link *link);

/* Answers what was marked as doubted. Callbacks may submit anew, or close. */
static void answer_doubted(struct redis_link *link) {
    for (size_t i = 0; i < link->ops.count && !link->closed; i++) {
        struct redis_op *op = &link->ops.list[i];
        if (op->state == REDIS_OP_DOUBTED) {
            char *text = op->text;
            op->state = REDIS_OP_IDLE;
            op->text = NULL;
            link->setup.doubt(link->setup.context, i, op->sent, op->reason, text);
            free(text);
        }
    }
}

static void log_trouble(struct log_limit *limit, const char *event, const char *text) {
    uint64_t suppressed = 0;
    if (log_allow(limit, LOG_EVERY_MS, &suppressed)) {
        log_event(LOG_WARN, event, LOG_TEXT("why", text), LOG_NUMBER("suppressed", suppressed));
    }
}

static void connect_now(struct redis_link *link) {
    link->retry_ns = 0;
    link->connecting = true;
    redis_route_start(&link->route, link->budget_ns);
}

static void connect_after(struct redis_link *link, int64_t pause_ns) {
    link->retry_ns = clock_now().boot_ns + pause_ns;
}

/* Gives the connection up. What was sent on it is unsure, what was not waits for the next one. */
static void drop(struct redis_link *link, enum election_reason reason, const char *text,
                 int64_t pause_least_ns) {
    redis_stream_close(link->stream);
    link->stream = NULL;
    link->broken = false;
    redis_ops_forget(&link->ops);
    link->waiting = false;
    snprintf(link->text, sizeof link->text, "%s", text);
    redis_ops_doubt_under_way(&link->ops, reason, text);
    int64_t pause_ns = 0; /* after a good connection the next attempt is made at once */
    if (!link->proven || pause_least_ns > 0) {
        pause_ns = redis_backoff_fail(&link->backoff, link->setup.backoff_most_ns);
    }
    connect_after(link, pause_ns > pause_least_ns ? pause_ns : pause_least_ns);
    log_trouble(&link->lost_limit, "store-connection-lost", text);
    link->setup.trouble(link->setup.context, text);
}

static void drop_and_answer(struct redis_link *link, enum election_reason reason, const char *text,
                            int64_t pause_least_ns) {
    drop(link, reason, text, pause_least_ns);
    answer_doubted(link);
    arm(link);
}

static void send_bytes(struct redis_link *link, size_t index, struct redis_command command) {
    redis_ops_push(&link->ops, index);
    if (!redis_stream_send(link->stream, command.bytes, command.size)) {
        link->broken = true; /* the timer sees to it: no callback from in here */
    }
}

static void send_op(struct redis_link *link, size_t index) {
    struct redis_op *op = &link->ops.list[index];
    op->body = op->body || link->no_evalsha;
    struct redis_command command = link->setup.request(link->setup.context, index, op->body);
    op->state = REDIS_OP_SENT;
    op->sent = clock_now();
    send_bytes(link, index, command);
}

/* Asks the replicas about all that is held. What was sent before is answered before WAIT is, so it
 * covers that too. */
static void raise_barrier(struct redis_link *link) {
    int64_t deadline_ns = redis_ops_deadline_ns(&link->ops);
    link->waiting = true;
    send_bytes(link, link->ops.count,
               redis_barrier_command(link->setup.replicas, clock_now().boot_ns, deadline_ns));
}

/* The answer to WAIT: all that is held was sent before it. */
static void on_barrier(struct redis_link *link, const redisReply *reply) {
    char text[REDIS_BARRIER_TEXT];
    enum redis_barrier_result result = redis_barrier_read(link->setup.replicas, reply, text);
    link->waiting = false;
    if (result == REDIS_BARRIER_LOST) {
        drop_and_answer(link, REASON_STORE_REFUSED, text, 1);
        return;
    }
    for (size_t i = 0; i < link->ops.count && !link->closed; i++) {
        struct redis_op *op = &link->ops.list[i];
        if (op->state == REDIS_OP_HELD && result == REDIS_BARRIER_PASSED) {
            op->state = REDIS_OP_IDLE;
            link->setup.confirmed(link->setup.context, i);
        } else if (op->state == REDIS_OP_HELD) {
            redis_op_doubt(op, REASON_STORE_REFUSED, text);
        }
    }
    answer_doubted(link);
}

/* Sends what waits, or sees to a connection. */
static void pump(struct redis_link *link) {
    if (link->stream == NULL) {
        if (!link->connecting && link->retry_ns == 0) {
            connect_now(link);
        }
        return;
    }
    int64_t now_ns = clock_now().boot_ns;
    for (size_t i = 0; i < link->ops.count && !link->broken; i++) {
        if (link->ops.list[i].state == REDIS_OP_QUEUED && link->ops.list[i].hold_ns <= now_ns) {
            send_op(link, i);
        }
    }
}

/* An error reply. */
static void on_error(struct redis_link *link, size_t index, const redisReply *reply) {
    struct redis_op *op = &link->ops.list[index];
    enum redis_failure failure = redis_failure_of(reply->str);
    char text[REDIS_OP_TEXT];

    if (!op->body && (failure == REDIS_FAILURE_NOSCRIPT || failure == REDIS_FAILURE_DENIED)) {
        link->no_evalsha = failure == REDIS_FAILURE_DENIED;
        op->body = true; /* it did nothing yet, so this is the first attempt still */
        send_op(link, index);
        arm(link);
        return;
    }
    redis_failure_explain(text, sizeof text, reply->str);
    redis_op_doubt(op, REASON_STORE_REFUSED, text);
    if (failure == REDIS_FAILURE_NOT_MASTER) {
        drop_and_answer(link, REASON_STORE_REFUSED, text, 1);
    } else if (failure == REDIS_FAILURE_AUTH) {
        /* They may have been changed since; but who takes them and then refuses is not hammered. */
        redis_gate_distrust_secrets(&link->route.gate);
        drop_and_answer(link, REASON_STORE_REFUSED, text, link->proven ? 1 : AUTH_PAUSE_NS);
    } else {
        answer_doubted(link);
    }
}

static void on_answer(struct redis_link *link, size_t index, const redisReply *reply) {
    struct redis_op *op = &link->ops.list[index];
    op->state = REDIS_OP_IDLE;
    enum redis_link_taken taken = link->setup.answer(link->setup.context, index, op->sent, reply);
    if (taken == REDIS_LINK_STRANGE) {
        op->state = REDIS_OP_SENT;
        drop_and_answer(link, REASON_STORE_UNREACHABLE,
                        "an answer of a strange shape: this is not what gavel talks to", 0);
        return;
    }
    /* The callback may have closed the link or broken the connection; then this changes nothing. */
    link->proven = true;
    link->backoff.failures = 0;
    if (taken == REDIS_LINK_HELD) {
        op->state = REDIS_OP_HELD;
        if (!link->waiting) {
            raise_barrier(link);
            arm(link);
        }
    }
}

static void on_reply(void *context, const redisReply *reply) {
    struct redis_link *link = context;
    char text[REDIS_OP_TEXT];
    if (link->ops.due == 0) {
        bool told = reply->type == REDIS_REPLY_ERROR;
        redis_failure_text(text, sizeof text, told ? reply->str : "", told ? reply->len : 0);
        drop_and_answer(link, REASON_STORE_UNREACHABLE,
                        told ? text : "the server talks without being asked", 0);
        return;
    }
    size_t index = redis_ops_pop(&link->ops);
    if (index == link->ops.count) {
        on_barrier(link, reply);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        on_error(link, index, reply);
    } else {
        on_answer(link, index, reply);
    }
    if (link->ops.due == 0) {
        arm(link); /* it need not wake up for a deadline that was kept */
    }
}

static void on_down(void *context, const char *why) {
    drop_and_answer(context, REASON_STORE_UNREACHABLE, why, 0);
}

static const struct redis_stream_events stream_events = {.on_reply = on_reply, .on_down = on_down};

static void on_gate_open(void *context, struct redis_stream *stream, uint32_t warnings) {
    struct redis_link *link = context;
    link->connecting = false;
    link->stream = stream;
    link->warnings = warnings;
    link->text[0] = '\0';
    link->refused = false;
    link->proven = false;
    link->no_evalsha = false;
    redis_ops_forget(&link->ops);
    link->waiting = false;
    redis_stream_own(stream, &stream_events, link);
    link->setup.opened(link->setup.context);
    pump(link);
    arm(link);
}

static void on_gate_failed(void *context, enum redis_gate_end end, const char *text) {
    struct redis_link *link = context;
    bool refused = end == REDIS_GATE_REFUSED || end == REDIS_GATE_AUTH;
    int64_t pause_ns = redis_backoff_fail(&link->backoff, link->setup.backoff_most_ns);
    link->connecting = false;
    connect_after(link, end == REDIS_GATE_AUTH ? AUTH_PAUSE_NS + pause_ns / 4 : pause_ns);
    snprintf(link->text, sizeof link->text, "%s", text);
    link->refused = refused;
    /* After silence a request goes on waiting: its own time is not over. */
    if (end != REDIS_GATE_TIMEOUT) {
        redis_ops_doubt_queued(&link->ops,
                               refused ? REASON_STORE_REFUSED : REASON_STORE_UNREACHABLE, text);
    }
    log_trouble(&link->failed_limit, "store-connect-failed", text);
    link->setup.trouble(link->setup.context, text);
    answer_doubted(link);
    arm(link);
}

static void expire(struct redis_link *link, int64_t now_ns) {
    bool sent = false;
    for (size_t i = 0; i < link->ops.count; i++) {
        struct redis_op *op = &link->ops.list[i];
        if (op->state == REDIS_OP_IDLE || op->deadline_ns > now_ns) {
            continue;
        }
        if (redis_op_is_under_way(op)) {
            sent = true;
        } else if (op->state == REDIS_OP_QUEUED) {
            redis_op_doubt(op,
                           link->text[0] != '\0' && link->refused ? REASON_STORE_REFUSED
                                                                  : REASON_STORE_UNREACHABLE,
                           link->text[0] != '\0' ? link->text : "no connection in time");
        }
    }
    if (sent && link->stream != NULL) {
        drop(link, REASON_STORE_UNREACHABLE, "no answer in time", 0);
    }
    answer_doubted(link);
}

static int64_t earliest(const struct redis_link *link) {
    int64_t at_ns = redis_ops_earliest_ns(&link->ops, link->stream != NULL);
    if (link->retry_ns != 0 && link->retry_ns < at_ns) {
        at_ns = link->retry_ns;
    }
    return link->broken ? 0 : at_ns;
}

static void on_timer(uv_timer_t *timer) {
    struct redis_link *link = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    int64_t due_ns = earliest(link);
    if (!link->late && !link->broken && due_ns <= now_ns - LATE_NS) {
        link->late = true;
        (void)uv_timer_start(&link->timer, on_timer, 1, 0);
        return;
    }
    link->late = false;
    if (link->broken) {
        drop_and_answer(link, REASON_STORE_UNREACHABLE, "the connection broke", 0);
        return;
    }
    expire(link, now_ns);
    if (!link->closed && link->retry_ns != 0 && link->retry_ns <= now_ns) {
        connect_now(link);
    }
    if (!link->closed) {
        pump(link);
    }
    arm(link);
}

static void arm(struct redis_link *link) {
    if (link->closed) {
        return;
    }
    int64_t at_ns = earliest(link);
    if (at_ns == NEVER_NS) {
        (void)uv_timer_stop(&link->timer);
        return;
    }
    int64_t left_ns = at_ns - clock_now().boot_ns;
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    link->late = link->late && left_ns <= 0;
    uv_update_time(link->setup.gate.loop);
    (void)uv_timer_start(&link->timer, on_timer, left_ms, 0);
}

void redis_link_init(struct redis_link *link, const struct redis_link_setup *setup) {
    memset(link, 0, sizeof *link);
    link->setup = *setup;
    link->setup.gate.on_open = on_gate_open;
    link->setup.gate.on_failed = on_gate_failed;
    link->setup.gate.context = link;
    link->setup.gate.requests = true;
    redis_ops_init(&link->ops, setup->op_count);
    redis_route_init(&link->route, &link->setup.gate, setup->sentinels);
    (void)uv_timer_init(setup->gate.loop, &link->timer);
    link->timer.data = link;
    store_lives_begin(setup->gate.lives);
}

void redis_link_finish(struct redis_link *link) {
    redis_ops_finish(&link->ops);
}

void redis_link_submit(struct redis_link *link, size_t index, int64_t timeout_ns, int64_t hold_ns) {
    struct redis_op *op = &link->ops.list[index];
    if (op->state != REDIS_OP_IDLE) {
        abort(); /* two requests at a time for one election: against the contract */
    }
    int64_t now_ns = clock_now().boot_ns;
    *op = (struct redis_op){.state = REDIS_OP_QUEUED,
                            .deadline_ns = now_ns + timeout_ns,
                            .hold_ns = hold_ns > 0 ? now_ns + hold_ns : 0};
    int64_t least_ns = link->setup.sentinels != NULL ? BUDGET_LEAST_SENTINELS_NS : BUDGET_LEAST_NS;
    link->budget_ns = timeout_ns > least_ns ? timeout_ns : least_ns;
    pump(link);
    arm(link);
}

void redis_link_unhold(struct redis_link *link) {
    for (size_t i = 0; i < link->ops.count; i++) {
        link->ops.list[i].hold_ns = 0;
    }
    if (link->stream != NULL) {
        pump(link);
    }
    arm(link);
}

void redis_link_move(struct redis_link *link, const char *why) {
    uint32_t random = 0;
    random_bytes(&random, sizeof random);
    int64_t pause_ns = (1 + random % MOVE_JITTER_MS) * NS_PER_MS;
    if (link->stream != NULL) {
        drop_and_answer(link, REASON_STORE_UNREACHABLE, why, pause_ns);
        return;
    }
    if (link->connecting) {
        redis_route_cancel(&link->route);
        link->connecting = false;
        connect_after(link, pause_ns);
    } else if (link->retry_ns > clock_now().boot_ns + pause_ns) {
        connect_after(link, pause_ns);
    }
    arm(link);
}

static void on_timer_closed(uv_handle_t *handle) {
    struct redis_link *link = handle->data;
    store_lives_end(link->setup.gate.lives);
}

void redis_link_close(struct redis_link *link) {
    link->closed = true;
    redis_route_close(&link->route);
    if (link->stream != NULL) {
        redis_stream_close(link->stream);
        link->stream = NULL;
    }
    uv_close((uv_handle_t *)&link->timer, on_timer_closed);
}
