/* The scripts on servers that are limited, full, demoted or restarted. */
#include "redis_script_kit.h"

#include "store/redis/scripts.h"

/* What a server must allow, and nothing more. */
#define LEAST_RIGHTS "~gavel:* +eval +get +pttl +set +pexpire +pexpireat +del +hmget +hset +time"

static void login_with(struct kit *kit, const char *rights) {
    char command[256];
    snprintf(command, sizeof command, "ACL SETUSER narrow reset on >pw %s", rights);
    redis_server_run(kit->server, command);
    kit_login(kit, "narrow");
}

static void hash_is_the_servers_own(void **state) {
    struct kit *kit = *state;
    static const struct redis_script *const scripts[] = {&redis_script_acquire, &redis_script_renew,
                                                         &redis_script_release};
    for (size_t i = 0; i < 3; i++) {
        redisReply *reply =
            redis_server_do(kit->server, "SCRIPT LOAD %b", scripts[i]->body, scripts[i]->size);
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        assert_string_equal(reply->str, scripts[i]->sha1);
        freeReplyObject(reply);
    }
}

/* Lua prints 14 digits of a number: it must become text by string.format alone. */
static void numbers_become_text_in_one_way(void **state) {
    (void)state;
    static const struct redis_script *const scripts[] = {&redis_script_acquire, &redis_script_renew,
                                                         &redis_script_release};
    for (size_t i = 0; i < 3; i++) {
        const char *body = scripts[i]->body;
        assert_null(strstr(body, "tostring"));
        assert_null(strstr(body, "cjson"));
        assert_null(strncmp(body, "#!", 2) == 0 ? body : NULL);
        for (const char *at = strstr(body, ".."); at != NULL; at = strstr(at, "..")) {
            assert_memory_equal(at, "...", 3); /* variable arguments, no joining of strings */
            at += 3;
        }
    }
}

static void least_rights_are_enough(void **state) {
    struct kit *kit = *state;
    login_with(kit, LEAST_RIGHTS);
    struct store_request request = kit_take(kit, 1);
    assert_string_equal(kit->reply.server, "");
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_int_equal(kit->reply.doubt, DOUBT_UNKNOWN_SERVER);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.doubt, DOUBT_UNKNOWN_SERVER);
    kit_give(kit, request, true); /* PUBLISH is denied, the release counts */
    assert_string_equal(kit_value(kit), "");
    assert_string_equal(kit_field(kit, "clean"), "0"); /* unknown proves nothing */
    kit_take(kit, 2);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
}

static void info_is_enough_for_a_proof(void **state) {
    struct kit *kit = *state;
    login_with(kit, LEAST_RIGHTS " +info");
    kit_give(kit, kit_take(kit, 1), true);
    kit_take(kit, 2);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN);
}

static void record_is_written_before_the_lease(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_request(1);
    login_with(kit, LEAST_RIGHTS " +info -hset +hdel");
    assert_false(kit_run(kit, STORE_ACQUIRED, &request));
    assert_string_equal(kit_value(kit), "");

    login_with(kit, LEAST_RIGHTS " +info -set");
    assert_false(kit_run(kit, STORE_ACQUIRED, &request));
    assert_string_equal(kit_value(kit), "");
    int64_t burnt = kit_number(kit, "tok");
    assert_true(burnt > 0); /* never to be given out */
    login_with(kit, LEAST_RIGHTS " +info");
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_true((int64_t)kit->reply.token > burnt);
    assert_int_not_equal(kit->reply.prior, PRIOR_CLEAN);
}

static void renewal_counts_without_its_record(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    redis_server_run(kit->server, "PEXPIRE %s 900", kit->names.lease);
    login_with(kit, LEAST_RIGHTS " +info -hset +hdel");
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_pttl(kit) > 9000);
    request.raise_token = true;
    assert_false(kit_run(kit, STORE_RENEWED, &request)); /* but no new token */
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");
    /* The end in the record was behind by then: without it the record proves nothing. */
    request = kit_request(2);
    redis_server_run(kit->server, "ACL SETUSER narrow +hset");
    assert_int_equal(kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES)->prior, PRIOR_NONE);
}

static void full_memory_does_not_end_a_lease(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    struct store_request other = kit_request(2);
    kit_age(kit);
    int64_t end = kit_number(kit, "end");
    redis_server_run(kit->server, "CONFIG SET maxmemory-policy noeviction");
    redis_server_run(kit->server, "CONFIG SET maxmemory 100kb");

    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_pttl(kit) > 9000);
    assert_true(kit_number(kit, "end") > end); /* a script that has written may go on */
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    kit_give(kit, request, true);
    assert_string_equal(kit_value(kit), "");
    assert_false(kit_run(kit, STORE_ACQUIRED, &other));
    assert_non_null(strstr(kit->error, "OOM"));
    assert_string_equal(kit_value(kit), "");
    redis_server_run(kit->server, "CONFIG SET maxmemory 0");
    kit_take(kit, 2);
}

static void demoted_master_is_refused(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    redis_server_run(kit->server, "CONFIG SET replica-read-only no"); /* it would take writes */
    redis_server_run(kit->server, "REPLICAOF 127.0.0.1 1");
    static const enum store_event_type types[] = {STORE_ACQUIRED, STORE_RENEWED, STORE_RELEASED};
    for (size_t i = 0; i < 3; i++) {
        assert_false(kit_run(kit, types[i], &request));
        assert_non_null(strstr(kit->error, "GAVELNOTMASTER"));
    }
    redis_server_run(kit->server, "REPLICAOF NO ONE");
    redis_server_run(kit->server, "CONFIG SET replica-read-only yes");
    /* A new replication history: what the record says was said before it. */
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.doubt, DOUBT_OTHER_SERVER);
}

static void replicas_are_warned_of(void **state) {
    struct kit *kit = *state;
    const char *extra[] = {"--replicaof", "127.0.0.1", NULL, NULL};
    char port[8];
    snprintf(port, sizeof port, "%u", kit->server->port);
    extra[2] = port;
    struct redis_server *replica = redis_server_start(extra);
    assert_non_null(replica);
    struct store_request request = kit_take(kit, 1);
    for (int i = 0; i < 1000 && kit->reply.warnings == 0; i++) {
        usleep(5000);
        kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    }
    assert_int_equal(kit->reply.warnings, WARNING_STORE_REPLICATED_ASYNC);
    redis_server_stop(replica);
}

static void restarted_server_is_another(void **state) {
    struct kit *kit = *state;
    kit_give(kit, kit_take(kit, 1), true);
    assert_string_equal(kit_field(kit, "clean"), "1");
    redis_server_run(kit->server, "SAVE"); /* the record survives, its proof does not */
    redisFree(kit->context);
    redis_server_kill(kit->server);
    assert_true(redis_server_launch(kit->server));
    kit->context = redis_server_connect(kit->server);
    assert_string_equal(kit_field(kit, "clean"), "1");
    struct store_request request = kit_request(2);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_int_equal(kit->reply.doubt, DOUBT_OTHER_SERVER);
}

static void releases_are_published(void **state) {
    struct kit *kit = *state;
    redisContext *listener = redis_server_connect(kit->server);
    redisReply *reply = redisCommand(listener, "SUBSCRIBE %s", kit->names.channel);
    freeReplyObject(reply);
    for (int clean = 0; clean <= 1; clean++) {
        char message[96];
        struct store_request request = kit_take(kit, (unsigned char)(clean + 1));
        int length = snprintf(message, sizeof message, "%llu %s ",
                              (unsigned long long)request.token, clean != 0 ? "clean" : "unclean");
        for (int i = 0; i < NONCE_BYTES; i++) {
            length +=
                snprintf(message + length, sizeof message - (size_t)length, "%02x", clean + 1);
        }
        kit_give(kit, request, clean != 0);
        assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
        assert_string_equal(reply->element[2]->str, message);
        freeReplyObject(reply);
    }
    redisFree(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(hash_is_the_servers_own),
        KIT_TEST(numbers_become_text_in_one_way),
        KIT_TEST(least_rights_are_enough),
        KIT_TEST(info_is_enough_for_a_proof),
        KIT_TEST(record_is_written_before_the_lease),
        KIT_TEST(renewal_counts_without_its_record),
        KIT_TEST(full_memory_does_not_end_a_lease),
        KIT_TEST(demoted_master_is_refused),
        KIT_TEST(replicas_are_warned_of),
        KIT_TEST(restarted_server_is_another),
        KIT_TEST(releases_are_published),
    };
    return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
