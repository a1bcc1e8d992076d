#include "store/postgres/gate.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_NS (2 * NS_PER_S)
#define ROUNDS 2

static void next_address(struct pg_gate *gate);

static void on_timer(uv_timer_t *timer);

static void arm(struct pg_gate *gate, int64_t after_ns) {
    uv_update_time(gate->loop);
    (void)uv_timer_start(&gate->timer, on_timer, (uint64_t)(after_ns / NS_PER_MS), 0);
}

/* One address has this much time for all of it; the last one more, nothing is won by hurry. */
static int64_t limit_ns(const struct pg_gate *gate) {
    const struct pg_route *route = gate->route;
    bool last = route->tried == route->target.count && route->next_address == route->address_count;
    int64_t limit = last ? 2 * LIMIT_NS : LIMIT_NS;
    int64_t given = route->target.connect_timeout_ns;
    return given > 0 && given < limit ? given : limit;
}

void pg_gate_cancel(struct pg_gate *gate) {
    if (gate->step != PG_GATE_IDLE) {
        pg_link_drop(gate->link);
    }
    gate->step = PG_GATE_IDLE;
    pg_link_drop(&gate->second);
    pg_route_forget(gate->route);
    (void)uv_timer_stop(&gate->timer);
}

static void note(struct pg_gate *gate, enum pg_failure failure, const char *text) {
    static const int weight[] = {[PG_FAILURE_LOST] = 0,
                                 [PG_FAILURE_SERVER] = 1,
                                 [PG_FAILURE_LATER] = 2,
                                 [PG_FAILURE_OTHER] = 3,
                                 [PG_FAILURE_CONFIG] = 4};
    if (gate->text[0] == '\0' || weight[failure] >= weight[gate->failure]) {
        gate->failure = failure;
        pg_text(gate->text, sizeof gate->text, text);
    }
}

static void fail(struct pg_gate *gate) {
    pg_gate_cancel(gate);
    gate->failed(gate->context, gate->failure, gate->text);
}

/* This address is of no use. */
static void refuse(struct pg_gate *gate, enum pg_failure failure, const char *why) {
    char where[80];
    char text[2 * PG_TEXT];
    pg_route_text(gate->route, where, sizeof where);
    (void)snprintf(text, sizeof text, "%s: %s", where, why);
    note(gate, failure, text);
    pg_link_drop(gate->link);
    pg_link_drop(&gate->second);
    next_address(gate); /* may be the end of it */
}

static void ask(struct pg_gate *gate, struct pg_link *link, enum pg_gate_step step,
                struct pg_sql *sql) {
    gate->step = step;
    bool sent = pg_link_send(link, sql->text);
    free(sql->text);
    if (!sent) {
        refuse(gate, PG_FAILURE_LOST, "the connection broke");
    }
}

static void ask_facts(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    pg_sql_facts(&sql);
    pg_sql_table(&sql, gate->plan);
    ask(gate, gate->link, PG_GATE_FACTS, &sql);
}

static void open_second(struct pg_gate *gate) {
    enum pg_failure failure;
    char text[PG_TEXT];
    gate->step = PG_GATE_OPEN_SECOND;
    if (!pg_route_open(gate->route, &gate->second, &failure, text)) {
        refuse(gate, failure, text);
    }
}

static void begin_second(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    pg_sql_add(&sql, "BEGIN;");
    pg_sql_facts(&sql);
    ask(gate, &gate->second, PG_GATE_SECOND_BEGINS, &sql);
}

static void ask_again(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    pg_sql_facts(&sql);
    ask(gate, gate->link, PG_GATE_SAME, &sql);
}

static void create(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    pg_sql_add(&sql, "ROLLBACK;");
    pg_sql_create(&sql, gate->plan);
    ask(gate, &gate->second, PG_GATE_CREATE, &sql);
}

static void settle(struct pg_gate *gate) {
    bool transaction = gate->plan->options->transaction;
    struct pg_sql sql = {0};
    random_bytes(&gate->random, sizeof gate->random);
    gate->random >>= 1;
    if (transaction) {
        pg_sql_add(&sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;");
    }
    pg_sql_settings(&sql, gate->plan, transaction);
    pg_sql_read_settings(&sql);
    pg_sql_add(&sql, "SELECT pg_catalog.pg_try_advisory_%slock(%" PRIu64 ") AS random",
               transaction ? "xact_" : "", gate->random);
    ask(gate, gate->link, PG_GATE_SETTLE, &sql);
}

static void try_second(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    pg_sql_add(&sql, "SELECT pg_catalog.pg_try_advisory_xact_lock(%" PRIu64 ") AS random; ROLLBACK",
               gate->random);
    ask(gate, &gate->second, PG_GATE_SECOND_TRIES, &sql);
}

static void finish(struct pg_gate *gate) {
    struct pg_sql sql = {0};
    if (gate->plan->options->transaction) {
        pg_sql_add(&sql, "SELECT true AS random; ROLLBACK");
    } else {
        pg_sql_add(&sql,
                   "SELECT pg_catalog.pg_advisory_unlock(%" PRIu64 ") AS random; "
                   "LISTEN " PG_CHANNEL,
                   gate->random);
    }
    ask(gate, gate->link, PG_GATE_FINISH, &sql);
}

static void after_facts(struct pg_gate *gate) {
    if (gate->second.state == PG_LINK_DOWN) {
        open_second(gate);
    } else if (gate->missing) {
        refuse(gate, PG_FAILURE_OTHER, "the table was made, and is not there");
    } else {
        settle(gate);
    }
}

static void after_same(struct pg_gate *gate) {
    if (--gate->rounds > 0) {
        ask_again(gate);
    } else if (gate->missing) {
        create(gate);
    } else {
        settle(gate);
    }
}

static void open_up(struct pg_gate *gate) {
    gate->step = PG_GATE_IDLE;
    gate->route->worked = gate->route->host;
    pg_link_drop(&gate->second);
    (void)uv_timer_stop(&gate->timer);
    gate->opened(gate->context, &gate->place);
}

static bool random_is(const struct pg_answers *answers, const char *value) {
    const PGresult *result = pg_result(answers, "random");
    return result != NULL && strcmp(pg_value(result, 0, "random"), value) == 0;
}

/* The table was made by another sidecar in the same moment. */
static bool made_twice(const struct pg_answers *answers) {
    return strcmp(answers->sqlstate, "23505") == 0 || strcmp(answers->sqlstate, "42P07") == 0;
}

static bool judge(struct pg_gate *gate, const struct pg_answers *answers,
                  struct pg_verdict *verdict) {
    switch (gate->step) {
    case PG_GATE_FACTS:
        return pg_check_facts(gate, answers, verdict);
    case PG_GATE_SECOND_BEGINS:
        return pg_check_second(gate, answers, verdict);
    case PG_GATE_SAME:
        return pg_check_same(gate, answers, verdict);
    case PG_GATE_SETTLE:
        if (!random_is(answers, "t")) {
            pg_text(verdict->text, PG_TEXT, "a lock with a random key was not given");
            return false;
        }
        return pg_check_settings(gate, answers, verdict);
    case PG_GATE_SECOND_TRIES:
        pg_text(verdict->text, PG_TEXT,
                "advisory locks do not exclude here: another session got "
                "one that was held. This cannot hold an election");
        return random_is(answers, "f");
    case PG_GATE_FINISH:
        pg_text(verdict->text, PG_TEXT, "a lock could not be given back");
        return random_is(answers, "t");
    case PG_GATE_CREATE:
    case PG_GATE_IDLE:
    case PG_GATE_BEGIN:
    case PG_GATE_LOOKUP:
    case PG_GATE_OPEN:
    case PG_GATE_OPEN_SECOND:
        break;
    }
    return true;
}

static void go_on(struct pg_gate *gate) {
    switch (gate->step) {
    case PG_GATE_FACTS:
        after_facts(gate);
        break;
    case PG_GATE_SECOND_BEGINS:
        gate->rounds = gate->plan->options->transaction ? 1 : ROUNDS;
        ask_again(gate);
        break;
    case PG_GATE_SAME:
        after_same(gate);
        break;
    case PG_GATE_CREATE:
        ask_facts(gate);
        break;
    case PG_GATE_SETTLE:
        try_second(gate);
        break;
    case PG_GATE_SECOND_TRIES:
        finish(gate);
        break;
    case PG_GATE_FINISH:
        open_up(gate);
        break;
    case PG_GATE_IDLE:
    case PG_GATE_BEGIN:
    case PG_GATE_LOOKUP:
    case PG_GATE_OPEN:
    case PG_GATE_OPEN_SECOND:
        break;
    }
}

static void on_answered(void *context, const struct pg_answers *answers) {
    struct pg_gate *gate = context;
    struct pg_verdict verdict = {.failure = PG_FAILURE_CONFIG, .text = ""};
    if (gate->step == PG_GATE_CREATE && answers->failed && made_twice(answers)) {
        go_on(gate);
        return;
    }
    if (answers->failed) {
        bool second = gate->step == PG_GATE_SECOND_BEGINS;
        char text[PG_TEXT + 48];
        (void)snprintf(text, sizeof text, "%s%s", second ? "a transaction is refused: " : "",
                       answers->text);
        refuse(gate, answers->failure, text);
    } else if (!judge(gate, answers, &verdict)) {
        refuse(gate, verdict.failure, verdict.text);
    } else {
        go_on(gate);
    }
}

static void on_opened(void *context) {
    struct pg_gate *gate = context;
    if (gate->step == PG_GATE_OPEN) {
        ask_facts(gate);
    } else if (gate->step == PG_GATE_OPEN_SECOND) {
        begin_second(gate);
    }
}

static void on_down(void *context, enum pg_failure failure, const char *text) {
    refuse(context, failure, text);
}

static const struct pg_link_events link_events = {on_opened, on_down, on_answered, NULL};

static void next_address(struct pg_gate *gate) {
    enum pg_failure failure;
    char text[PG_TEXT];
    for (;;) {
        switch (pg_route_next(gate->route)) {
        case PG_ROUTE_LATER:
            gate->step = PG_GATE_LOOKUP;
            arm(gate, limit_ns(gate));
            return;
        case PG_ROUTE_END:
            if (gate->route->why[0] != '\0') {
                note(gate, PG_FAILURE_LOST, gate->route->why);
            }
            fail(gate);
            return;
        case PG_ROUTE_READY:
            break;
        }
        gate->step = PG_GATE_OPEN;
        gate->silent = false;
        gate->proxied = false;
        gate->missing = false;
        gate->link->events = &link_events;
        gate->link->context = gate;
        if (pg_route_open(gate->route, gate->link, &failure, text)) {
            arm(gate, limit_ns(gate));
            return;
        }
        note(gate, failure, text);
    }
}

static void on_looked_up(void *context) {
    struct pg_gate *gate = context;
    if (gate->step == PG_GATE_LOOKUP) {
        next_address(gate);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct pg_gate *gate = timer->data;
    gate->silent = gate->step != PG_GATE_BEGIN;
    if (gate->step == PG_GATE_BEGIN) {
        char text[PG_TEXT];
        if (!pg_route_begin(gate->route, text)) {
            note(gate, PG_FAILURE_CONFIG, text);
            fail(gate);
            return;
        }
        next_address(gate);
    } else if (gate->step == PG_GATE_LOOKUP) {
        pg_route_forget(gate->route);
        note(gate, PG_FAILURE_LOST, "looking up the name: no answer in time");
        next_address(gate);
    } else if (gate->step == PG_GATE_OPEN) {
        refuse(gate, PG_FAILURE_LOST, "no connection in time");
    } else {
        refuse(gate, PG_FAILURE_LOST,
               "connected, but no answer in time (a pooler may have no session to give)");
    }
}

void pg_gate_init(struct pg_gate *gate) {
    gate->step = PG_GATE_IDLE;
    gate->route->found = on_looked_up;
    gate->route->context = gate;
    pg_link_init(&gate->second, gate->loop, gate->lives, &link_events, gate);
    (void)uv_timer_init(gate->loop, &gate->timer); /* cannot fail */
    gate->timer.data = gate;
    store_lives_begin(gate->lives);
}

void pg_gate_start(struct pg_gate *gate) {
    gate->step = PG_GATE_BEGIN;
    gate->failure = PG_FAILURE_LOST;
    gate->text[0] = '\0';
    gate->silent = false;
    arm(gate, 0);
}

static void on_timer_closed(uv_handle_t *handle) {
    struct pg_gate *gate = handle->data;
    store_lives_end(gate->lives);
}

void pg_gate_close(struct pg_gate *gate) {
    pg_gate_cancel(gate);
    uv_close((uv_handle_t *)&gate->timer, on_timer_closed);
}
