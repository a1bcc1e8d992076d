#include "store/redis/route.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static void ask_next(struct redis_route *route);

static void fail(struct redis_route *route) {
    char text[REDIS_GATE_TEXT];
    const char *why = route->text[0] != '\0' ? route->text : "no answer in time";
    size_t count = route->sentinels->url->sentinel_count;
    if (route->tried || count == 1) {
        snprintf(text, sizeof text, "%s", why);
    } else {
        snprintf(text, sizeof text, "none of %zu Sentinels tells the master: %.110s", count, why);
    }
    route->setup.on_failed(route->setup.context, route->end, text);
}

/* What a Sentinel said of itself; a server that it named has more to say. */
static void note(struct redis_route *route, enum redis_gate_end end, const char *text) {
    if (!route->tried && (end >= route->end || route->text[0] == '\0')) {
        route->end = end;
        snprintf(route->text, sizeof route->text, "%s", text);
    }
}

/* One of `parts` equal parts of the time that is left. */
static int64_t share_ns(const struct redis_route *route, size_t parts) {
    int64_t left_ns = route->deadline_ns - clock_now().boot_ns;
    return left_ns > 0 ? left_ns / (int64_t)parts : 0;
}

static void try_master(struct redis_route *route, const struct redis_master *master,
                       size_t teller) {
    bool others = route->asked < route->sentinels->url->sentinel_count;
    route->master = *master;
    route->teller = teller;
    redis_resolver_point(&route->resolver, master->host, master->port);
    redis_gate_start(&route->gate, share_ns(route, others ? 2 : 1));
}

static void ask_next(struct redis_route *route) {
    struct redis_sentinels *sentinels = route->sentinels;
    size_t count = sentinels->url->sentinel_count;
    bool in_time = clock_now().boot_ns < route->deadline_ns;
    if (in_time && route->asked < count) {
        size_t index = (route->first + route->asked) % count;
        size_t parts = count - route->asked + 1; /* the server needs time too */
        route->asked++;
        redis_gate_aim(&route->ask, &sentinels->resolvers[index]);
        redis_gate_start(&route->ask, share_ns(route, parts));
    } else if (in_time && route->older.port != 0 && !route->silent) {
        struct redis_master older = route->older;
        route->older.port = 0;
        try_master(route, &older, route->older_teller);
    } else {
        fail(route);
    }
}

/* A Sentinel has named the master. */
static void on_told(void *context, struct redis_stream *stream, uint32_t warnings) {
    struct redis_route *route = context;
    struct redis_sentinels *sentinels = route->sentinels;
    const struct redis_master *told = &route->ask.handshake.master;
    size_t count = sentinels->url->sentinel_count;
    size_t teller = (route->first + route->asked - 1) % count;
    (void)warnings;
    redis_stream_close(stream);
    bool older = redis_master_is_older(told, &sentinels->newest);
    redis_sentinels_learn(sentinels, told);
    if (older && (route->older.port == 0 || route->older.epoch < told->epoch)) {
        route->older = *told;
        route->older_teller = teller;
    }
    if (older || (route->tried && redis_master_is_same(told, &route->master))) {
        ask_next(route);
    } else {
        try_master(route, told, teller);
    }
}

static void on_not_told(void *context, enum redis_gate_end end, const char *text) {
    struct redis_route *route = context;
    route->silent = true;
    note(route, end, text);
    ask_next(route);
}

static void on_open(void *context, struct redis_stream *stream, uint32_t warnings) {
    struct redis_route *route = context;
    if (route->sentinels != NULL && route->setup.requests) { /* only then it said that it is one */
        redis_sentinels_trust(route->sentinels, &route->master, route->teller);
    }
    route->setup.on_open(route->setup.context, stream, warnings);
}

static void on_failed(void *context, enum redis_gate_end end, const char *text) {
    struct redis_route *route = context;
    if (route->sentinels == NULL) {
        route->setup.on_failed(route->setup.context, end, text);
        return;
    }
    const struct redis_endpoint *teller = &route->sentinels->url->sentinels[route->teller];
    if (!route->tried || end >= route->end) {
        route->end = end;
        snprintf(route->text, sizeof route->text, "%.95s (the master by Sentinel %.30s:%u)", text,
                 teller->host, (unsigned)teller->port);
    }
    route->tried = true;
    if (end == REDIS_GATE_AUTH) {
        fail(route); /* no more attempts with the same password */
    } else {
        ask_next(route);
    }
}

void redis_route_init(struct redis_route *route, const struct redis_gate_setup *setup,
                      struct redis_sentinels *sentinels) {
    struct redis_gate_setup gate = *setup;
    memset(route, 0, sizeof *route);
    route->setup = *setup;
    route->sentinels = sentinels;
    gate.on_open = on_open;
    gate.on_failed = on_failed;
    gate.context = route;
    if (sentinels != NULL) {
        redis_resolver_init(&route->resolver, setup->loop, setup->lives, "", 0);
        gate.resolver = &route->resolver;
    }
    redis_gate_init(&route->gate, &gate);
    if (sentinels != NULL) {
        gate.on_open = on_told;
        gate.on_failed = on_not_told;
        gate.resolver = &sentinels->resolvers[0];
        gate.requests = false;
        gate.sentinel = true;
        redis_gate_init(&route->ask, &gate);
    }
}

void redis_route_start(struct redis_route *route, int64_t budget_ns) {
    if (route->sentinels == NULL) {
        redis_gate_start(&route->gate, budget_ns);
        return;
    }
    route->deadline_ns = clock_now().boot_ns + budget_ns;
    route->first = route->sentinels->first;
    route->asked = 0;
    route->master.port = 0;
    route->older.port = 0;
    route->silent = false;
    route->tried = false;
    route->end = REDIS_GATE_TIMEOUT;
    route->text[0] = '\0';
    ask_next(route);
}

void redis_route_cancel(struct redis_route *route) {
    redis_gate_cancel(&route->gate);
    if (route->sentinels != NULL) {
        redis_gate_cancel(&route->ask);
        route->master.port = 0;
    }
}

void redis_route_close(struct redis_route *route) {
    redis_gate_close(&route->gate);
    if (route->sentinels != NULL) {
        redis_gate_close(&route->ask);
        redis_resolver_cancel(&route->resolver);
    }
}
