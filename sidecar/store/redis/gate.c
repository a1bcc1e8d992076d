#include "store/redis/gate.h"

#include "base/clock.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <string.h>

static void try_next(struct redis_gate *gate);

static void arm(struct redis_gate *gate, int64_t at_ns);

static void note(struct redis_gate *gate, enum redis_gate_end end, const char *text) {
    if (end >= gate->end || gate->text[0] == '\0') {
        gate->end = end;
        redis_failure_text(gate->text, sizeof gate->text, text, strlen(text));
    }
}

static void drop_stream(struct redis_gate *gate) {
    if (gate->stream != NULL) {
        redis_stream_close(gate->stream);
        gate->stream = NULL;
    }
}

void redis_gate_cancel(struct redis_gate *gate) {
    gate->state = REDIS_GATE_IDLE;
    drop_stream(gate);
    redis_resolver_forget(gate->setup.resolver, gate);
    (void)uv_timer_stop(&gate->timer);
}

static void fail(struct redis_gate *gate) {
    redis_gate_cancel(gate);
    if (gate->text[0] == '\0') { /* it was over before anything could be tried */
        snprintf(gate->text, sizeof gate->text, "no time left to connect");
    }
    gate->setup.on_failed(gate->setup.context, gate->end, gate->text);
}

/* True: user or password are others than those that were used. */
static bool refresh_secrets(const struct redis_gate *gate) {
    const struct store_secrets *secrets = gate->setup.secrets;
    if (secrets == NULL || secrets->refresh == NULL) {
        return false;
    }
    secrets->refresh(secrets->context);
    return secrets->generation != gate->generation;
}

/* Where this attempt goes, for people. */
static void describe(struct redis_gate *gate) {
    char address[INET6_ADDRSTRLEN] = "?";
    unsigned port = gate->setup.resolver->port;
    if (gate->setup.url->local) {
        snprintf(gate->where, sizeof gate->where, "%s", gate->setup.url->path);
        return;
    }
    const struct sockaddr_storage *current = &gate->addresses.list[gate->next_address - 1];
    if (current->ss_family == AF_INET6) {
        (void)uv_ip6_name((const struct sockaddr_in6 *)current, address, sizeof address);
        snprintf(gate->where, sizeof gate->where, "[%s]:%u", address, port);
    } else {
        (void)uv_ip4_name((const struct sockaddr_in *)current, address, sizeof address);
        snprintf(gate->where, sizeof gate->where, "%s:%u", address, port);
    }
}

static void note_here(struct redis_gate *gate, enum redis_gate_end end, const char *why) {
    char text[REDIS_GATE_TEXT];
    snprintf(text, sizeof text, "%s%.100s: %s", gate->setup.sentinel ? "Sentinel " : "",
             gate->where, why);
    note(gate, end, text);
}

/* This address is of no use: notes why and goes on to the next. */
static void refuse(struct redis_gate *gate, enum redis_gate_end end, const char *why) {
    bool asking = gate->state == REDIS_GATE_ASKING && !gate->setup.sentinel;
    if (asking && gate->handshake.auth_problem != NULL) {
        end = REDIS_GATE_AUTH; /* which was known before whatever came now */
        why = gate->handshake.auth_problem;
    }
    note_here(gate, end, why);
    drop_stream(gate);
    if (end == REDIS_GATE_AUTH && !gate->retried && refresh_secrets(gate)) {
        gate->retried = true;
        gate->next_address--;
        try_next(gate);
    } else if (end == REDIS_GATE_AUTH) {
        fail(gate); /* more attempts with the same password may lock the user out */
    } else {
        try_next(gate);
    }
}

static void open_gate(struct redis_gate *gate) {
    struct redis_stream *stream = gate->stream;
    if (!gate->setup.url->local) {
        gate->worked = gate->addresses.list[gate->next_address - 1];
    }
    gate->stream = NULL;
    redis_gate_cancel(gate);
    gate->setup.on_open(gate->setup.context, stream, gate->handshake.warnings);
}

static void go_on(struct redis_gate *gate, enum redis_handshake_result result) {
    if (result == REDIS_HANDSHAKE_DONE) {
        open_gate(gate);
    } else if (result == REDIS_HANDSHAKE_FAILED) {
        gate->handshake.auth_problem = NULL; /* whatever is to be told of it is in `problem` */
        refuse(gate, gate->handshake.end, gate->handshake.problem);
    }
}

static void on_open(void *context) {
    struct redis_gate *gate = context;
    const struct redis_gate_setup *setup = &gate->setup;
    struct redis_handshake_setup handshake = {.url = setup->url,
                                              .secrets = setup->secrets,
                                              .host = setup->resolver->host,
                                              .port = setup->resolver->port,
                                              .requests = setup->requests,
                                              .sentinel = setup->sentinel};
    gate->state = REDIS_GATE_ASKING;
    gate->generation = setup->secrets != NULL ? setup->secrets->generation : 0;
    go_on(gate, redis_handshake_begin(&gate->handshake, &handshake, gate->stream));
}

static void on_reply(void *context, const redisReply *reply) {
    struct redis_gate *gate = context;
    go_on(gate, redis_handshake_take(&gate->handshake, reply));
}

static void on_down(void *context, const char *why) {
    struct redis_gate *gate = context;
    char text[REDIS_GATE_TEXT];
    /* What TLS has to say is said already. */
    bool asked = gate->state == REDIS_GATE_ASKING && gate->setup.requests && !gate->setup.url->tls;
    snprintf(text, sizeof text, "%s%s", why,
             asked
                 ? " when asked for its role: a port for TLS (rediss://), or a proxy without ROLE?"
                 : "");
    refuse(gate, REDIS_GATE_UNREACHABLE, text);
}

static const struct redis_stream_events stream_events = {on_open, on_reply, on_down};

/* What is left of the budget, shared fairly among the addresses that are left. */
static void limit(struct redis_gate *gate) {
    size_t left = gate->setup.url->local ? 1 : gate->addresses.count - gate->next_address + 1;
    int64_t now_ns = clock_now().boot_ns;
    gate->limit_ns = now_ns + (gate->deadline_ns - now_ns) / (int64_t)left;
    arm(gate, gate->limit_ns);
}

static bool have_next(const struct redis_gate *gate) {
    size_t count = gate->setup.url->local ? 1 : gate->addresses.count;
    return gate->next_address < count && clock_now().boot_ns < gate->deadline_ns;
}

static void try_next(struct redis_gate *gate) {
    while (have_next(gate)) {
        const char *why = NULL;
        size_t index = gate->next_address++;
        const struct redis_gate_setup *setup = &gate->setup;
        gate->state = REDIS_GATE_CONNECTING;
        describe(gate);
        gate->stream = setup->url->local
                           ? redis_stream_local(setup->loop, setup->url->path, setup->lives, &why)
                           : redis_stream_tcp(setup->loop,
                                              (const struct sockaddr *)&gate->addresses.list[index],
                                              setup->lives, &why);
        if (gate->stream != NULL) {
            if (setup->url->tls) {
                redis_stream_secure(gate->stream,
                                    redis_tls_begin(setup->tls, setup->resolver->host));
            }
            redis_stream_own(gate->stream, &stream_events, gate);
            limit(gate);
            return;
        }
        note_here(gate, REDIS_GATE_UNREACHABLE, why);
    }
    fail(gate);
}

/* Puts the address that worked last time first. */
static void prefer(struct redis_gate *gate) {
    struct redis_addresses *addresses = &gate->addresses;
    for (size_t i = 1; i < addresses->count; i++) {
        if (memcmp(&addresses->list[i], &gate->worked, sizeof gate->worked) == 0) {
            struct sockaddr_storage first = addresses->list[0];
            addresses->list[0] = addresses->list[i];
            addresses->list[i] = first;
            return;
        }
    }
}

static void on_resolved(void *context, const struct redis_addresses *addresses, const char *why) {
    struct redis_gate *gate = context;
    if (gate->state != REDIS_GATE_RESOLVING) {
        return;
    }
    if (addresses == NULL) {
        char text[REDIS_GATE_TEXT];
        snprintf(text, sizeof text, "looking up %.100s: %s", gate->setup.resolver->host, why);
        note(gate, REDIS_GATE_UNREACHABLE, text);
        fail(gate);
        return;
    }
    gate->addresses = *addresses;
    prefer(gate);
    try_next(gate);
}

static void begin(struct redis_gate *gate) {
    const char *why = NULL;
    struct redis_resolver *resolver = gate->setup.resolver;
    if (gate->setup.url->local || redis_resolver_literal(resolver, &gate->addresses)) {
        try_next(gate);
        return;
    }
    gate->state = REDIS_GATE_RESOLVING;
    arm(gate, gate->deadline_ns);
    if (!redis_resolver_ask(resolver, on_resolved, gate, &why)) {
        on_resolved(gate, NULL, why);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct redis_gate *gate = timer->data;
    int64_t now_ns = clock_now().boot_ns;
    if (gate->state == REDIS_GATE_STARTING) {
        begin(gate);
    } else if (gate->state == REDIS_GATE_RESOLVING) {
        char text[REDIS_GATE_TEXT];
        snprintf(text, sizeof text, "looking up %.100s: no answer in time",
                 gate->setup.resolver->host);
        note(gate, REDIS_GATE_TIMEOUT, text);
        fail(gate);
    } else if (now_ns < gate->limit_ns) {
        arm(gate, gate->limit_ns);
    } else {
        refuse(gate, REDIS_GATE_TIMEOUT, redis_stream_late(gate->stream));
    }
}

static void arm(struct redis_gate *gate, int64_t at_ns) {
    int64_t left_ns = at_ns - clock_now().boot_ns;
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    uv_update_time(gate->setup.loop);
    (void)uv_timer_start(&gate->timer, on_timer, left_ms, 0);
}

void redis_gate_init(struct redis_gate *gate, const struct redis_gate_setup *setup) {
    memset(gate, 0, sizeof *gate);
    gate->setup = *setup;
    (void)uv_timer_init(setup->loop, &gate->timer); /* cannot fail */
    gate->timer.data = gate;
    store_lives_begin(setup->lives);
}

void redis_gate_distrust_secrets(struct redis_gate *gate) {
    gate->end = REDIS_GATE_AUTH;
}

void redis_gate_aim(struct redis_gate *gate, struct redis_resolver *resolver) {
    gate->setup.resolver = resolver;
}

void redis_gate_start(struct redis_gate *gate, int64_t budget_ns) {
    if (gate->end == REDIS_GATE_AUTH) {
        (void)refresh_secrets(gate);
    }
    gate->retried = false;
    gate->state = REDIS_GATE_STARTING;
    gate->deadline_ns = clock_now().boot_ns + budget_ns;
    gate->next_address = 0;
    gate->end = REDIS_GATE_TIMEOUT;
    gate->text[0] = '\0';
    arm(gate, 0); /* from the loop, so that no callback comes before this returns */
}

static void on_timer_closed(uv_handle_t *handle) {
    struct redis_gate *gate = handle->data;
    store_lives_end(gate->setup.lives);
}

void redis_gate_close(struct redis_gate *gate) {
    redis_gate_cancel(gate);
    uv_close((uv_handle_t *)&gate->timer, on_timer_closed);
}
