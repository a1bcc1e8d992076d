/* What lies under the keys that is broken, or not ours; and who may release. */
#include "redis_script_kit.h"

static void corrupt_record_refuses_grants(void **state) {
    struct kit *kit = *state;
    static const char *const tokens[] = {
        "x", "", "-5", "1.5", "12x", "100000000000001", "99999999999999999999", "0x10", "1e3"};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        redis_server_run(kit->server, "FLUSHALL");
        redis_server_run(kit->server, "HSET %s tok %s", kit->names.record, tokens[i]);
        struct store_request request = kit_request(1);
        assert_false(kit_run(kit, STORE_ACQUIRED, &request));
        assert_non_null(strstr(kit->error, kit->names.record));
        request.take = false;
        assert_false(kit_run(kit, STORE_ACQUIRED, &request));
        assert_string_equal(kit_value(kit), "");
        assert_string_equal(kit_field(kit, "tok"), tokens[i]);
    }
    redis_server_run(kit->server, "FLUSHALL");
    redis_server_run(kit->server, "LPUSH %s x", kit->names.record);
    struct store_request request = kit_request(1);
    assert_false(kit_run(kit, STORE_ACQUIRED, &request));
    assert_non_null(strstr(kit->error, "GAVELRECORD"));
    redis_server_run(kit->server, "DEL %s", kit->names.record);
    kit_take(kit, 1); /* recovers when it is put right */
}

static void corrupt_record_does_not_end_a_lease(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    redis_server_run(kit->server, "HSET %s tok broken", kit->names.record);
    redis_server_run(kit->server, "PEXPIRE %s 900", kit->names.lease);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_pttl(kit) > 9000);
    assert_string_equal(kit_field(kit, "tok"), "broken");
    struct store_request raise = request;
    raise.raise_token = true;
    assert_false(kit_run(kit, STORE_RENEWED, &raise));
    struct store_request other = kit_request(2);
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_true(kit->reply.token == request.token);
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "tok"), "broken");
    assert_string_equal(kit_field(kit, "clean"), "0");
}

static void expect_foreign(struct kit *kit) {
    struct store_request request = kit_request(1);
    static const enum store_event_type types[] = {STORE_ACQUIRED, STORE_RENEWED, STORE_RELEASED};
    for (size_t i = 0; i < 3; i++) {
        kit_expect(kit, types[i], &request, OUTCOME_NO);
        assert_int_equal(kit->reply.reason, REASON_FOREIGN_VALUE);
        assert_true(kit->reply.held);
        assert_string_equal(kit->reply.holder, "?");
    }
}

static void foreign_values_are_never_touched(void **state) {
    struct kit *kit = *state;
    static const char *const values[] = {"",
                                         "x",
                                         "01010101010101010101010101010101",
                                         "01010101010101010101010101010101 5 10000",
                                         "01010101010101010101010101010101 x 10000 a",
                                         "01010101010101010101010101010101 5 0 a",
                                         "01010101010101010101010101010101 5 3600001 a",
                                         "01010101010101010101010101010101 100000000000001 10000 a",
                                         "0101010101010101010101010101010 5 10000 a",
                                         "010101010101010101010101010101011 5 10000 a",
                                         "0101010101010101010101010101010A 5 10000 a",
                                         "01010101010101010101010101010101  5 10000 a"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        redis_server_run(kit->server, "SET %s %s", kit->names.lease, values[i]);
        expect_foreign(kit);
        assert_string_equal(kit_value(kit), values[i]);
        assert_int_equal(kit_pttl(kit), -1); /* nor is its expiry */
    }
    char large[1024];
    memset(large, 'a', sizeof large);
    memcpy(large, "01010101010101010101010101010101 5 10000 ", 41);
    redis_server_run(kit->server, "SET %s %b PX 86400000", kit->names.lease, large, sizeof large);
    expect_foreign(kit);
    assert_true(kit_pttl(kit) > 86000000);
}

static void wrong_types_are_never_touched(void **state) {
    struct kit *kit = *state;
    static const char *const commands[] = {"LPUSH %s x", "HSET %s a b", "SADD %s x", "ZADD %s 1 x",
                                           "XADD %s * a b"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        redis_server_run(kit->server, "DEL %s", kit->names.lease);
        redisReply *reply = redisCommand(kit->context, commands[i], kit->names.lease);
        freeReplyObject(reply);
        expect_foreign(kit);
        reply = redis_server_do(kit->server, "EXISTS %s", kit->names.lease);
        assert_int_equal(reply->integer, 1);
        freeReplyObject(reply);
    }
    redis_server_run(kit->server, "DEL %s", kit->names.lease);
    kit_take(kit, 1);
}

static void follower_caps_what_would_outlive_its_ttl(void **state) {
    struct kit *kit = *state;
    struct store_request other = kit_request(2);
    kit_take(kit, 1);
    redisReply *before = redis_server_do(kit->server, "HGETALL %s", kit->names.record);

    redis_server_run(kit->server, "PERSIST %s", kit->names.lease);
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_int_equal(kit->reply.warnings, WARNING_KEY_WITHOUT_EXPIRY);
    assert_true(kit->reply.expires_in_ns == 10 * NS_PER_S);
    assert_true(kit_pttl(kit) > 9000 && kit_pttl(kit) <= 10000);

    redis_server_run(kit->server, "PEXPIRE %s 86400000", kit->names.lease);
    other.take = false;
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_int_equal(kit->reply.warnings, WARNING_KEY_WITHOUT_EXPIRY);
    assert_true(kit_pttl(kit) <= 10000);

    redis_server_run(kit->server, "PEXPIRE %s 4000", kit->names.lease); /* a rightful one */
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_int_equal(kit->reply.warnings, 0);
    assert_true(kit_pttl(kit) <= 4000);

    redisReply *after = redis_server_do(kit->server, "HGETALL %s", kit->names.record);
    assert_int_equal(before->elements, after->elements);
    for (size_t i = 0; i < before->elements; i++) {
        assert_string_equal(before->element[i]->str, after->element[i]->str);
    }
    freeReplyObject(before);
    freeReplyObject(after);
}

static void only_sensible_ttls_are_capped(void **state) {
    struct kit *kit = *state;
    struct store_request other = kit_request(2);
    redis_server_run(kit->server, "SET %s %s", kit->names.lease,
                     "01010101010101010101010101010101 5 299 a");
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_int_equal(kit->reply.warnings, WARNING_KEY_WITHOUT_EXPIRY);
    assert_int_equal(kit_pttl(kit), -1);
    assert_true(kit->reply.expires_in_ns < 0);
    redis_server_run(kit->server, "SET %s %s", kit->names.lease,
                     "01010101010101010101010101010101 5 3600000 a");
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_true(kit_pttl(kit) > 3590000);
    assert_true(kit->reply.longest_ttl_ns == 3600 * NS_PER_S);
}

static void release_is_for_the_holder_only(void **state) {
    struct kit *kit = *state;
    char value[1024];
    struct store_request request = kit_take(kit, 1);
    struct store_request other = kit_request(2);
    other.clean = true;
    other.token = request.token;
    snprintf(value, sizeof value, "%s", kit_value(kit));
    kit_expect(kit, STORE_RELEASED, &other, OUTCOME_NO);
    assert_string_equal(kit_value(kit), value);
    assert_string_equal(kit_field(kit, "clean"), "0");
    kit_give(kit, request, true);
    assert_string_equal(kit_value(kit), "");
    kit_expect(kit, STORE_RELEASED, &request, OUTCOME_NO);
    assert_string_equal(kit_field(kit, "clean"), "1"); /* a second release spoils nothing */
}

static void holders_with_odd_names_hold_too(void **state) {
    struct kit *kit = *state;
    kit->setup.identity = "a name with spaces, \x01 and more";
    struct store_request request = kit_take(kit, 1);
    struct store_request other = kit_request(2);
    kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO);
    assert_string_equal(kit->reply.holder, "?");
    request.raise_token = true;
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_non_null(strstr(kit_value(kit), kit->setup.identity));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(corrupt_record_refuses_grants),
        KIT_TEST(corrupt_record_does_not_end_a_lease),
        KIT_TEST(foreign_values_are_never_touched),
        KIT_TEST(wrong_types_are_never_touched),
        KIT_TEST(follower_caps_what_would_outlive_its_ttl),
        KIT_TEST(only_sensible_ttls_are_capped),
        KIT_TEST(release_is_for_the_holder_only),
        KIT_TEST(holders_with_odd_names_hold_too),
    };
    return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
