#include "store/redis/command.h"

#include "base/memory.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_ARGUMENTS_MAX 14
#define NUMBER_SIZE 24

static struct redis_command format(size_t count, const char *const *arguments,
                                   const size_t *sizes) {
    struct redis_command command = {NULL, 0};
    const char **list = memory_zeroed(count, sizeof *list);
    memcpy(list, arguments, count * sizeof *list);
    /* an int in hiredis before 1.0 */
    long long size = redisFormatCommandArgv(&command.bytes, (int)count, list, sizes);
    free(list);
    if (size < 0) {
        abort(); /* out of memory */
    }
    command.size = (size_t)size;
    return command;
}

struct redis_command redis_command(size_t count, const char *const *arguments) {
    return format(count, arguments, NULL);
}

/* The arguments of one script call, and room for those that are made up here. */
struct call {
    const char *arguments[SCRIPT_ARGUMENTS_MAX];
    size_t sizes[SCRIPT_ARGUMENTS_MAX];
    size_t count;
    char nonce[2 * NONCE_BYTES + 1];
    char ttl_ms[NUMBER_SIZE];
    char seen[NUMBER_SIZE];
    char floor[NUMBER_SIZE];
    char wait_ms[NUMBER_SIZE];
    char token[NUMBER_SIZE];
};

static void add_bytes(struct call *call, const char *argument, size_t size) {
    call->arguments[call->count] = argument;
    call->sizes[call->count] = size;
    call->count++;
}

static void add(struct call *call, const char *argument) {
    add_bytes(call, argument, strlen(argument));
}

static void add_flag(struct call *call, bool flag) {
    add(call, flag ? "1" : "0");
}

static int64_t round_up_ms(int64_t time_ns) {
    return time_ns > 0 ? (time_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

static void prepare(struct call *call, const struct store_setup *setup,
                    const struct store_request *request) {
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        snprintf(call->nonce + 2 * i, 3, "%02x", request->nonce[i]);
    }
    snprintf(call->ttl_ms, sizeof call->ttl_ms, "%" PRId64, round_up_ms(setup->ttl_ns));
    snprintf(call->seen, sizeof call->seen, "%" PRIu64, request->seen_token);
    snprintf(call->wait_ms, sizeof call->wait_ms, "%" PRId64, round_up_ms(request->wait_ns));
    snprintf(call->token, sizeof call->token, "%" PRIu64, request->token);
    snprintf(call->floor, sizeof call->floor, "%" PRIu64, setup->token_floor);
}

static void add_head(struct call *call, const struct redis_script *script,
                     const struct redis_names *names, bool body) {
    add(call, body ? "EVAL" : "EVALSHA");
    if (body) {
        add_bytes(call, script->body, script->size);
    } else {
        add(call, script->sha1);
    }
    add(call, "2");
    add(call, names->lease);
    add(call, names->record);
    add(call, call->nonce);
}

/* What only a node among several is told. */
static void add_node(struct call *call, const struct store_setup *setup) {
    if (setup->node_list != NULL) {
        add(call, call->token);
        add(call, setup->node_list);
    }
}

struct redis_command redis_command_script(enum store_event_type type,
                                          const struct store_setup *setup,
                                          const struct store_request *request,
                                          const struct redis_names *names, bool body) {
    struct call call = {.count = 0};
    prepare(&call, setup, request);
    if (type == STORE_ACQUIRED) {
        add_head(&call, &redis_script_acquire, names, body);
        add(&call, setup->identity);
        add(&call, call.ttl_ms);
        add(&call, call.seen);
        add(&call, call.floor);
        add_flag(&call, request->take);
        add(&call, call.wait_ms);
        add_node(&call, setup);
    } else if (type == STORE_RENEWED) {
        add_head(&call, &redis_script_renew, names, body);
        add(&call, call.ttl_ms);
        add_flag(&call, request->raise_token);
        add(&call, call.seen);
        add(&call, call.floor);
        add(&call, call.wait_ms);
        add_node(&call, setup);
    } else {
        add_head(&call, &redis_script_release, names, body);
        add_flag(&call, request->clean);
        add(&call, names->channel);
        add(&call, call.token);
        add(&call, request->server);
    }
    return format(call.count, call.arguments, call.sizes);
}
