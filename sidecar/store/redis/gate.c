#include "store/redis/gate.h"

#include "base/clock.h"
#include "store/redis/command.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <string.h>

enum command { COMMAND_AUTH, COMMAND_SELECT, COMMAND_ROLE, COMMAND_MEMORY };

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
    gate->setup.on_failed(gate->setup.context, gate->end, gate->text);
}

static void describe(const struct redis_gate *gate, char *out, size_t size) {
    const struct redis_url *url = gate->setup.url;
    char address[INET6_ADDRSTRLEN] = "?";
    if (url->local) {
        snprintf(out, size, "%s", url->path);
        return;
    }
    const struct sockaddr_storage *current = &gate->addresses.list[gate->next_address - 1];
    if (current->ss_family == AF_INET6) {
        (void)uv_ip6_name((const struct sockaddr_in6 *)current, address, sizeof address);
        snprintf(out, size, "[%s]:%u", address, (unsigned)url->port);
    } else {
        (void)uv_ip4_name((const struct sockaddr_in *)current, address, sizeof address);
        snprintf(out, size, "%s:%u", address, (unsigned)url->port);
    }
}

/* This address is of no use: notes why and goes on to the next. */
static void refuse(struct redis_gate *gate, enum redis_gate_end end, const char *why) {
    char where[128];
    char text[REDIS_GATE_TEXT];
    describe(gate, where, sizeof where);
    snprintf(text, sizeof text, "%.100s: %s", where, why);
    note(gate, end, text);
    drop_stream(gate);
    if (end == REDIS_GATE_AUTH) {
        fail(gate); /* more attempts with the same password may lock the user out */
    } else {
        try_next(gate);
    }
}

static bool send_command(struct redis_gate *gate, enum command command, size_t count,
                         const char *const *arguments) {
    struct redis_command bytes = redis_command(count, arguments);
    gate->commands[gate->command_count++] = (int)command;
    return redis_stream_send(gate->stream, bytes.bytes, bytes.size);
}

static bool send_auth(struct redis_gate *gate) {
    const struct redis_url *url = gate->setup.url;
    const struct store_secrets *secrets = gate->setup.secrets;
    const char *user = url->has_user ? url->user : NULL;
    const char *password = url->has_password ? url->password : NULL;
    if (secrets != NULL && secrets->user != NULL) {
        user = secrets->user;
    }
    if (secrets != NULL && secrets->password != NULL) {
        password = secrets->password;
    }
    if (user != NULL) {
        const char *both[] = {"AUTH", user, password != NULL ? password : ""};
        return send_command(gate, COMMAND_AUTH, 3, both);
    }
    const char *alone[] = {"AUTH", password};
    return password == NULL || send_command(gate, COMMAND_AUTH, 2, alone);
}

static bool send_requests(struct redis_gate *gate) {
    char number[16];
    snprintf(number, sizeof number, "%u", gate->setup.url->database);
    const char *select[] = {"SELECT", number};
    const char *role[] = {"ROLE"};
    const char *memory[] = {"INFO", "memory"};
    return (gate->setup.url->database == 0 || send_command(gate, COMMAND_SELECT, 2, select)) &&
           send_command(gate, COMMAND_ROLE, 1, role) &&
           send_command(gate, COMMAND_MEMORY, 2, memory);
}

static void open_when_answered(struct redis_gate *gate) {
    if (gate->answered < gate->command_count) {
        return;
    }
    struct redis_stream *stream = gate->stream;
    if (!gate->setup.url->local) {
        gate->worked = gate->addresses.list[gate->next_address - 1];
    }
    gate->stream = NULL;
    redis_gate_cancel(gate);
    gate->setup.on_open(gate->setup.context, stream, gate->warnings);
}

static void on_open(void *context) {
    struct redis_gate *gate = context;
    gate->state = REDIS_GATE_ASKING;
    if (!send_auth(gate) || (gate->setup.requests && !send_requests(gate))) {
        refuse(gate, REDIS_GATE_UNREACHABLE, "the connection broke");
        return;
    }
    open_when_answered(gate);
}

/* What went wrong in AUTH. The server's own words are not repeated: some servers repeat the
 * arguments of a command that they do not know. */
static const char *auth_problem(const char *text) {
    if (strstr(text, "WRONGPASS") != NULL || strstr(text, "invalid password") != NULL) {
        return "the server refused user and password (WRONGPASS)";
    }
    if (strstr(text, "without any password configured") != NULL ||
        strstr(text, "no password is set") != NULL) {
        return "the server has no password configured, but one is given";
    }
    if (strstr(text, "max number of clients") != NULL) {
        return "the server has reached its number of clients";
    }
    if (strstr(text, "DENIED") != NULL) {
        return "the server is in protected mode and refuses other hosts";
    }
    return "the server refused AUTH";
}

static bool is_status(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, text) == 0;
}

/* NULL: the server may be used. */
static const char *role_problem(const redisReply *reply) {
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->type != REDIS_REPLY_STRING) {
        return "a strange answer to ROLE: this is not Redis";
    }
    const char *role = reply->element[0]->str;
    if (strcmp(role, "master") == 0) {
        return NULL;
    }
    return strcmp(role, "sentinel") == 0
               ? "this is a Sentinel, not the Redis server it watches: use that one's port"
               : "the server is not a master";
}

/* Says how the server throws keys away when its memory is full. */
static void read_memory(struct redis_gate *gate, const redisReply *reply) {
    if (reply->type != REDIS_REPLY_STRING) {
        return;
    }
    const char *limit = strstr(reply->str, "\nmaxmemory:");
    const char *policy = strstr(reply->str, "\nmaxmemory_policy:");
    static const char safe[] = "noeviction";
    if (limit != NULL && policy != NULL && limit[strlen("\nmaxmemory:")] != '0' &&
        strncmp(policy + strlen("\nmaxmemory_policy:"), safe, strlen(safe)) != 0) {
        gate->warnings |= WARNING_EVICTION_POLICY;
    }
}

/* NULL: the server said what it should. */
static const char *problem_of(struct redis_gate *gate, enum command command,
                              const redisReply *reply, enum redis_gate_end *end) {
    bool error = reply->type == REDIS_REPLY_ERROR;
    enum redis_failure failure = error ? redis_failure_of(reply->str) : REDIS_FAILURE_OTHER;
    *end = failure == REDIS_FAILURE_AUTH ? REDIS_GATE_AUTH : REDIS_GATE_REFUSED;

    if (command == COMMAND_AUTH) {
        if (error && strstr(reply->str, "max number of clients") == NULL) {
            *end = REDIS_GATE_AUTH;
        }
        return is_status(reply, "OK") ? NULL : auth_problem(error ? reply->str : "");
    }
    if (command == COMMAND_SELECT) {
        return is_status(reply, "OK") ? NULL : error ? reply->str : "a strange answer to SELECT";
    }
    if (command == COMMAND_ROLE) {
        bool denied = error && failure == REDIS_FAILURE_DENIED;
        return denied ? NULL : error ? reply->str : role_problem(reply);
    }
    read_memory(gate, reply); /* good to know, not needed */
    return NULL;
}

static void on_reply(void *context, const redisReply *reply) {
    struct redis_gate *gate = context;
    if (gate->answered == gate->command_count) {
        refuse(gate, REDIS_GATE_UNREACHABLE, "it talks without being asked");
        return;
    }
    enum redis_gate_end end = REDIS_GATE_REFUSED;
    enum command command = (enum command)gate->commands[gate->answered];
    const char *problem = problem_of(gate, command, reply, &end);
    if (problem != NULL) {
        refuse(gate, end, problem);
        return;
    }
    gate->answered++;
    open_when_answered(gate);
}

static void on_down(void *context, const char *why) {
    refuse(context, REDIS_GATE_UNREACHABLE, why);
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
        gate->command_count = 0;
        gate->answered = 0;
        gate->warnings = 0;
        gate->stream = setup->url->local
                           ? redis_stream_local(setup->loop, setup->url->path, setup->lives, &why)
                           : redis_stream_tcp(setup->loop,
                                              (const struct sockaddr *)&gate->addresses.list[index],
                                              setup->lives, &why);
        if (gate->stream != NULL) {
            if (setup->url->tls) {
                redis_stream_secure(gate->stream, redis_tls_begin(setup->tls, setup->url->host));
            }
            redis_stream_own(gate->stream, &stream_events, gate);
            limit(gate);
            return;
        }
        char where[128];
        char text[REDIS_GATE_TEXT];
        describe(gate, where, sizeof where);
        snprintf(text, sizeof text, "%.100s: %s", where, why);
        note(gate, REDIS_GATE_UNREACHABLE, text);
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
        snprintf(text, sizeof text, "looking up %.100s: %s", gate->setup.url->host, why);
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
        note(gate, REDIS_GATE_TIMEOUT, "looking up the name: no answer in time");
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
    redis_lives_begin(setup->lives);
}

void redis_gate_distrust_secrets(struct redis_gate *gate) {
    gate->end = REDIS_GATE_AUTH;
}

void redis_gate_start(struct redis_gate *gate, int64_t budget_ns) {
    const struct store_secrets *secrets = gate->setup.secrets;
    if (gate->end == REDIS_GATE_AUTH && secrets != NULL && secrets->refresh != NULL) {
        secrets->refresh(secrets->context);
    }
    gate->state = REDIS_GATE_STARTING;
    gate->deadline_ns = clock_now().boot_ns + budget_ns;
    gate->next_address = 0;
    gate->end = REDIS_GATE_TIMEOUT;
    gate->text[0] = '\0';
    arm(gate, 0); /* from the loop, so that no callback comes before this returns */
}

static void on_timer_closed(uv_handle_t *handle) {
    struct redis_gate *gate = handle->data;
    redis_lives_end(gate->setup.lives);
}

void redis_gate_close(struct redis_gate *gate) {
    redis_gate_cancel(gate);
    uv_close((uv_handle_t *)&gate->timer, on_timer_closed);
}
