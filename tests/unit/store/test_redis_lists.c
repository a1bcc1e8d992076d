/* What the scripts make of a record that names the nodes of Redlock. */
#include "redis_script_kit.h"

static void kit_alone(struct kit *kit) {
    kit->setup.node_list = NULL;
}

static void kit_among(struct kit *kit, const char *list) {
    kit->setup.node_list = list;
}

static void a_node_of_redlock_is_not_the_only_server(void **state) {
    struct kit *kit = *state;
    kit_among(kit, "a,b,c");
    kit_give(kit, kit_take(kit, 1), true);
    assert_string_equal(kit_field(kit, "clean"), "1");

    kit_alone(kit);
    struct store_request request = kit_request(2);
    for (int i = 0; i < 2; i++) {
        request.take = i == 0;
        kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
        assert_int_equal(kit->reply.reason, REASON_STORE_REFUSED);
        assert_int_equal(kit->reply.warnings, WARNING_NODE_LIST_DIFFERS);
        assert_true(kit->reply.held);
        assert_string_equal(kit_value(kit), "");
    }
    assert_string_equal(kit_field(kit, "list"), "a,b,c");

    /* The warning stands while one of them holds it. */
    kit_among(kit, "a,b,c");
    struct store_request held = kit_take(kit, 3);
    kit_alone(kit);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->reply.reason, REASON_HELD_BY_OTHER);
    assert_int_equal(kit->reply.warnings, WARNING_NODE_LIST_DIFFERS);
    assert_true(kit->reply.holder_nonce_known);
    kit_give(kit, held, true);

    /* Somebody has said that there is no Redlock any more: the clean end is as good as ever. */
    redis_server_run(kit->server, "HDEL %s list", kit->names.record);
    held = kit_take(kit, 4);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->reply.warnings, 0);
    kit_give(kit, held, true);
}

/* A lease under another list, or a record of it that has not run out. */
static void another_list_in_use_is_not_taken_under(void **state) {
    struct kit *kit = *state;
    kit_among(kit, "a,b,c");
    struct store_request held = kit_take(kit, 1);
    kit_among(kit, "c,d,e");
    struct store_request request = kit_request(2);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->apart, 2);
    kit_give(kit, held, false); /* its end lies ahead still */
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->apart, 2);
    assert_string_equal(kit_value(kit), "");
}

static void another_list_that_has_run_out_is_told_of(void **state) {
    struct kit *kit = *state;
    kit_among(kit, "a,b,c");
    kit_give(kit, kit_take(kit, 1), true);
    assert_int_equal(kit->apart, 0);
    kit_among(kit, "a,b,c,d");
    struct store_request request = kit_request(2);
    request.take = false;
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->apart, 3);
    request = kit_take(kit, 2);
    assert_int_equal(kit->apart, 3);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_int_equal(kit->apart, 0); /* it is our list now */
}

static void an_end_that_nobody_wrote_holds_up_nobody(void **state) {
    struct kit *kit = *state;
    static const char *const ends[] = {"9007199254740991", "+3600000000"};
    for (size_t i = 0; i < 2; i++) {
        kit_among(kit, "a,b,c");
        kit_give(kit, kit_take(kit, (unsigned char)(2 * i + 1)), false);
        if (ends[i][0] == '+') {
            redis_server_run(kit->server, "HINCRBY %s end %s", kit->names.record, ends[i] + 1);
        } else {
            redis_server_run(kit->server, "HSET %s end %s", kit->names.record, ends[i]);
        }
        kit_among(kit, "c,d,e");
        struct store_request request = kit_take(kit, (unsigned char)(2 * i + 2));
        assert_int_not_equal(kit->reply.prior, PRIOR_CLEAN); /* it waits W */
        assert_true(kit_number(kit, "end") == (kit->reply.server_now_us / 1000 + 10001) * 1000);
        kit_give(kit, request, true);
    }
}

/* One node's record must not lift the tokens of all to the last there is. */
static void a_token_that_no_clock_explains_gets_no_vote(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_request(1);
    char value[128];
    kit_among(kit, "a,b,c");
    redis_server_run(kit->server, "HSET %s tok 99999999999997", kit->names.record);
    assert_false(kit_run(kit, STORE_ACQUIRED, &request));
    assert_non_null(strstr(kit->error, "GAVELTOKEN"));
    assert_non_null(strstr(kit->error, kit->names.record));
    assert_string_equal(kit_value(kit), "");

    /* What is held goes on, but for a new token. */
    redis_server_run(kit->server, "FLUSHALL");
    request = kit_take(kit, 2);
    uint64_t token = request.token;
    redis_server_run(kit->server, "HSET %s tok 99999999999997", kit->names.record);
    assert_true(kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES)->token == token);
    request.raise_token = true;
    assert_false(kit_run(kit, STORE_RENEWED, &request));
    assert_non_null(strstr(kit->error, "GAVELTOKEN"));
    request = kit_request(3);
    assert_false(kit_run(kit, STORE_ACQUIRED, &request));
    assert_false(kit_run(kit, STORE_RENEWED, &request));

    /* Nor is one believed in a lease. */
    redis_server_run(kit->server, "FLUSHALL");
    snprintf(value, sizeof value, "%032d 99999999999997 1000 pod-x", 7);
    redisReply *reply = redisCommand(kit->context, "SET %s %s PX 60000", kit->names.lease, value);
    freeReplyObject(reply);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(kit->reply.reason, REASON_FOREIGN_VALUE);
    assert_true(kit->reply.token == 0);
}

static void a_token_that_is_meant_gets_its_vote(void **state) {
    struct kit *kit = *state;
    kit_among(kit, "a,b,c");
    kit->setup.token_floor = UINT64_C(95000000000000);
    struct store_request request = kit_take(kit, 1);
    assert_true(request.token == UINT64_C(95000000000000));
    kit_give(kit, request, true);
    kit->setup.token_floor = 0;
    request = kit_request(2);
    request.seen_token = UINT64_C(95000000000000);
    assert_true(kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES)->token ==
                UINT64_C(95000000000001));

    /* One server alone decides by itself, and far below there is room enough. */
    redis_server_run(kit->server, "FLUSHALL");
    redis_server_run(kit->server, "HSET %s tok 89999999999999", kit->names.record);
    kit_give(kit, kit_take(kit, 3), true);
    redis_server_run(kit->server, "FLUSHALL");
    redis_server_run(kit->server, "HSET %s tok 99999999999997", kit->names.record);
    kit_alone(kit);
    assert_true(kit_take(kit, 4).token == UINT64_C(99999999999998));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(a_node_of_redlock_is_not_the_only_server),
        KIT_TEST(another_list_in_use_is_not_taken_under),
        KIT_TEST(another_list_that_has_run_out_is_told_of),
        KIT_TEST(an_end_that_nobody_wrote_holds_up_nobody),
        KIT_TEST(a_token_that_no_clock_explains_gets_no_vote),
        KIT_TEST(a_token_that_is_meant_gets_its_vote),
    };
    return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
