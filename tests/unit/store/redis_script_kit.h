#ifndef GAVEL_TESTS_REDIS_SCRIPT_KIT_H
#define GAVEL_TESTS_REDIS_SCRIPT_KIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis_server.h"
#include "store/redis/answer.h"
#include "store/redis/command.h"

/*
 * The scripts, run on a real server over one blocking connection, without the store around them.
 * Each test begins with an empty server.
 */
struct kit {
    struct redis_server *server;
    redisContext *context;
    struct redis_names names;
    struct store_setup setup;
    struct store_reply reply; /* of the last script */
    unsigned apart;           /* with a list of nodes: what it says of the record's */
    char error[512];          /* its error; empty: none */
};

static inline void kit_login(struct kit *kit, const char *user) {
    redisReply *reply = redisCommand(kit->context, "AUTH %s pw", user);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

static inline int kit_setup(void **state) {
    static struct kit kit;
    memset(&kit, 0, sizeof kit);
    kit.server = redis_server_start(NULL);
    if (kit.server == NULL) {
        fprintf(stderr, "SKIPPED: redis-server cannot be started\n");
        exit(77);
    }
    assert_true(redis_names_init(&kit.names, "ns", "one"));
    *state = &kit;
    return 0;
}

static inline int kit_teardown(void **state) {
    struct kit *kit = *state;
    redis_server_stop(kit->server);
    return 0;
}

static inline int kit_begin(void **state) {
    struct kit *kit = *state;
    kit->setup =
        (struct store_setup){.identity = "pod-a", .ttl_ns = 10 * NS_PER_S, .token_floor = 0};
    kit->context = redis_server_connect(kit->server);
    assert_non_null(kit->context);
    redis_server_run(kit->server, "CONFIG SET maxmemory 0"); /* whatever a failed test left */
    redis_server_run(kit->server, "FLUSHALL");
    return 0;
}

static inline int kit_end(void **state) {
    struct kit *kit = *state;
    redisFree(kit->context);
    return 0;
}

#define KIT_TEST(function) cmocka_unit_test_setup_teardown((function), kit_begin, kit_end)

static inline struct store_request kit_request(unsigned char nonce) {
    struct store_request request = {.take = true, .wait_ns = 10 * NS_PER_S};
    memset(request.nonce, nonce, sizeof request.nonce);
    return request;
}

/* Runs a script. True: an answer of its exact shape, in kit->reply. False: an error. */
static inline bool kit_run(struct kit *kit, enum store_event_type type,
                           const struct store_request *request) {
    struct redis_command command =
        redis_command_script(type, &kit->setup, request, &kit->names, true);
    redisReply *reply = NULL;
    assert_int_equal(redisAppendFormattedCommand(kit->context, command.bytes, command.size),
                     REDIS_OK);
    redisFreeCommand(command.bytes);
    assert_int_equal(redisGetReply(kit->context, (void **)&reply), REDIS_OK);
    kit->error[0] = '\0';
    bool error = reply->type == REDIS_REPLY_ERROR;
    if (error) {
        snprintf(kit->error, sizeof kit->error, "%s", reply->str);
    } else {
        redisReply head = *reply;
        if (kit->setup.node_list != NULL && type != STORE_RELEASED) {
            assert_true(redis_answer_take_list(&head, &kit->apart));
        }
        assert_true(redis_answer_read(&head, type, &kit->reply));
    }
    freeReplyObject(reply);
    return !error;
}

static inline const struct store_reply *kit_expect(struct kit *kit, enum store_event_type type,
                                                   const struct store_request *request,
                                                   enum outcome outcome) {
    if (!kit_run(kit, type, request)) {
        fail_msg("error: %s", kit->error);
    }
    assert_int_equal(kit->reply.outcome, outcome);
    return &kit->reply;
}

/* Acquires, which must be a YES; the request, with the token that a release needs. */
static inline struct store_request kit_take(struct kit *kit, unsigned char nonce) {
    struct store_request request = kit_request(nonce);
    request.token = kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES)->token;
    memcpy(request.server, kit->reply.server, sizeof request.server);
    return request;
}

static inline void kit_give(struct kit *kit, struct store_request request, bool clean) {
    request.clean = clean;
    kit_expect(kit, STORE_RELEASED, &request, OUTCOME_YES);
}

/* A field of the record, "" when it is missing; good until the next call. */
static inline const char *kit_field(struct kit *kit, const char *field) {
    static char text[128];
    redisReply *reply = redis_server_do(kit->server, "HGET %s %s", kit->names.record, field);
    snprintf(text, sizeof text, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

static inline int64_t kit_number(struct kit *kit, const char *field) {
    return strtoll(kit_field(kit, field), NULL, 10);
}

static inline long long kit_pttl(struct kit *kit) {
    redisReply *reply = redis_server_do(kit->server, "PTTL %s", kit->names.lease);
    long long left = reply->integer;
    freeReplyObject(reply);
    return left;
}

/* As if the last renewal had been 9 seconds ago: no test may hope that the clock has moved on
 * between two commands. */
static inline void kit_age(struct kit *kit) {
    redis_server_run(kit->server, "PEXPIRE %s 1000", kit->names.lease);
    redis_server_run(kit->server, "HINCRBY %s end -9000000", kit->names.record);
}

/* The lease's value, "" when there is none; good until the next call. */
static inline const char *kit_value(struct kit *kit) {
    static char text[1024];
    redisReply *reply = redis_server_do(kit->server, "GET %s", kit->names.lease);
    snprintf(text, sizeof text, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

#endif
