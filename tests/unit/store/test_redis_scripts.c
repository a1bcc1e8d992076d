/* What the scripts do to the lease and the record, on a real server. */
#include "redis_script_kit.h"

#define NONCE_2 "02020202020202020202020202020202"

/* The recorded end of a lease of that length: the millisecond after the key's last. */
static int64_t end_after(const struct kit *kit, int64_t length_ms) {
    return (kit->reply.server_now_us / 1000 + length_ms + 1) * 1000;
}

static void grant_is_written_whole(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    char value[256];
    snprintf(value, sizeof value, "01010101010101010101010101010101 %llu 10000 pod-a",
             (unsigned long long)request.token);
    assert_string_equal(kit_value(kit), value);
    assert_true(kit_pttl(kit) > 9000 && kit_pttl(kit) <= 10000);
    assert_true((uint64_t)kit_number(kit, "tok") == request.token);
    assert_string_equal(kit_field(kit, "clean"), "0");
    assert_string_equal(kit_field(kit, "ttl"), "10000");
    assert_string_equal(kit_field(kit, "nonce"), "01010101010101010101010101010101");
    assert_string_equal(kit_field(kit, "how"), "none no-record");
    assert_string_equal(kit_field(kit, "srv"), kit->reply.server);
    assert_int_equal(strlen(kit->reply.server), 81);
    assert_true(kit_number(kit, "end") == end_after(kit, 10000));
    /* Nobody can see the lease held after its recorded end. */
    redisReply *expiry = redis_server_do(kit->server, "PEXPIRETIME %s", kit->names.lease);
    assert_true((expiry->integer + 1) * 1000 == kit_number(kit, "end"));
    freeReplyObject(expiry);
    redisReply *reply = redis_server_do(kit->server, "PTTL %s", kit->names.record);
    assert_int_equal(reply->integer, -1); /* the record never expires */
    freeReplyObject(reply);
}

static void end_covers_an_older_lease(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_request(1);
    request.wait_ns = 60 * NS_PER_S; /* W above the ttl */
    request.token = kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES)->token;
    int64_t end = end_after(kit, 60000);
    assert_true(kit_number(kit, "end") == end);
    assert_string_equal(kit_field(kit, "ttl"), "60000"); /* whoever comes next learns W */

    /* Neither a retry nor a renewal nor a release without the mark takes it back. */
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_number(kit, "end") == end);
    kit_give(kit, request, false);
    assert_true(kit_number(kit, "end") == end);

    /* After a clean end there is nothing older to cover. */
    request = kit_take(kit, 2);
    kit_give(kit, request, true);
    assert_true(kit_number(kit, "end") == kit->reply.server_now_us);
    request = kit_request(3);
    request.wait_ns = 60 * NS_PER_S;
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN);
    assert_true(kit_number(kit, "end") == end_after(kit, 10000));
}

static void end_covers_the_longest_ttl(void **state) {
    struct kit *kit = *state;
    kit->setup.ttl_ns = 40 * NS_PER_S;
    kit_give(kit, kit_take(kit, 1), false);
    kit->setup.ttl_ns = 10 * NS_PER_S;
    kit_take(kit, 2);
    assert_true(kit->reply.longest_ttl_ns == 40 * NS_PER_S);
    assert_true(kit_number(kit, "end") == end_after(kit, 40000));
    assert_string_equal(kit_field(kit, "ttl"), "40000");
}

static void mark_needs_the_very_grant(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    request.token--; /* the release of a grant that is known otherwise */
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");

    request = kit_take(kit, 2);
    redis_server_run(kit->server, "HSET %s nonce %s", kit->names.record,
                     "99999999999999999999999999999999");
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");

    request = kit_take(kit, 3);
    redis_server_run(kit->server, "HSET %s srv another:server", kit->names.record);
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");

    request = kit_take(kit, 4);
    redis_server_run(kit->server, "HINCRBY %s tok 1", kit->names.record);
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");

    request = kit_take(kit, 5); /* last confirmed by another server than this */
    snprintf(request.server, sizeof request.server, "another:server");
    kit_give(kit, request, true);
    assert_string_equal(kit_field(kit, "clean"), "0");
}

static void record_must_be_whole_and_of_this_server(void **state) {
    struct kit *kit = *state;
    static const struct {
        const char *field, *value;
        enum prior_doubt doubt;
    } faults[] = {
        {"clean", "2", DOUBT_NO_RECORD},     {"clean", "", DOUBT_NO_RECORD},
        {"end", "soon", DOUBT_NO_RECORD},    {"end", "-1", DOUBT_NO_RECORD},
        {"end", "1e5", DOUBT_NO_RECORD},     {"ttl", "0", DOUBT_NO_RECORD},
        {"ttl", "3600001", DOUBT_NO_RECORD}, {"srv", "run:repl", DOUBT_OTHER_SERVER},
        {"srv", "", DOUBT_OTHER_SERVER},     {"tok", "0", DOUBT_NO_RECORD},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        kit_give(kit, kit_take(kit, (unsigned char)(2 * i + 1)), true);
        redis_server_run(kit->server, "HSET %s %s %s", kit->names.record, faults[i].field,
                         faults[i].value);
        struct store_request next = kit_take(kit, (unsigned char)(2 * i + 2));
        assert_int_equal(kit->reply.prior, PRIOR_NONE);
        assert_int_equal(kit->reply.doubt, faults[i].doubt);
        kit_give(kit, next, true);
    }
    static const char *const fields[] = {"tok", "clean", "end", "ttl", "srv", "nonce"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        kit_give(kit, kit_take(kit, (unsigned char)(101 + 2 * i)), true);
        redis_server_run(kit->server, "HDEL %s %s", kit->names.record, fields[i]);
        kit_give(kit, kit_take(kit, (unsigned char)(102 + 2 * i)), true);
    }
    kit_take(kit, 200);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN); /* all of that healed */
}

static void record_behind_proves_nothing(void **state) {
    struct kit *kit = *state;
    struct store_request first = kit_take(kit, 1);
    kit_give(kit, first, true);
    struct store_request second = kit_request(2);
    second.seen_token = first.token + 1;
    kit_expect(kit, STORE_ACQUIRED, &second, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_int_equal(kit->reply.doubt, DOUBT_TOKEN_BEHIND);
}

static void end_is_told(void **state) {
    struct kit *kit = *state;
    kit_give(kit, kit_take(kit, 1), false);
    int64_t end = kit_number(kit, "end");
    kit_take(kit, 2);
    assert_int_equal(kit->reply.prior, PRIOR_END);
    assert_true(kit->reply.prior_end_us == end);
    assert_string_equal(kit_field(kit, "how"), "end");
}

static void kept_answer_is_given_again(void **state) {
    struct kit *kit = *state;
    /* end becomes none, for good */
    kit_give(kit, kit_take(kit, 1), false);
    struct store_request request = kit_take(kit, 2);
    assert_int_equal(kit->reply.prior, PRIOR_END);
    for (int i = 0; i < 2; i++) {
        kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
        assert_true(kit->reply.token == request.token);
        assert_int_equal(kit->reply.prior, PRIOR_NONE);
        assert_int_equal(kit->reply.doubt, DOUBT_UNCLEAN);
    }
    /* clean stays clean, also after a renewal */
    kit_give(kit, request, true);
    request = kit_take(kit, 3);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN);
    /* none keeps its reason */
    redis_server_run(kit->server, "FLUSHALL");
    request = kit_take(kit, 4);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_int_equal(kit->reply.doubt, DOUBT_NO_RECORD);
}

static void kept_answer_needs_its_record(void **state) {
    struct kit *kit = *state;
    kit_give(kit, kit_take(kit, 1), true);
    struct store_request request = kit_take(kit, 2);
    assert_int_equal(kit->reply.prior, PRIOR_CLEAN);
    redis_server_run(kit->server, "HSET %s srv another:server", kit->names.record);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_int_equal(kit->reply.doubt, DOUBT_OTHER_SERVER);

    redis_server_run(kit->server, "DEL %s", kit->names.record);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
    assert_true((uint64_t)kit_number(kit, "tok") == request.token);
    kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(kit->reply.prior, PRIOR_NONE);
}

static void renewal_mends_the_record(void **state) {
    struct kit *kit = *state;
    kit_give(kit, kit_take(kit, 1), true);
    struct store_request request = kit_take(kit, 2);
    redis_server_run(kit->server, "DEL %s", kit->names.record);
    assert_true(kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES)->token == request.token);
    assert_true((uint64_t)kit_number(kit, "tok") == request.token);
    assert_string_equal(kit_field(kit, "how"), "none no-record");
    assert_string_equal(kit_field(kit, "nonce"), NONCE_2);

    /* What the lost record said of an older lease is not known: W covers it. */
    redis_server_run(kit->server, "DEL %s", kit->names.record);
    request.wait_ns = 60 * NS_PER_S;
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_number(kit, "end") >= kit->reply.server_now_us + 60 * 1000000);

    /* A larger recorded token stands. */
    redis_server_run(kit->server, "HSET %s tok 99999999999999 nonce %s clean 1", kit->names.record,
                     "77777777777777777777777777777777");
    assert_true(kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES)->token == request.token);
    assert_string_equal(kit_field(kit, "tok"), "99999999999999");
    assert_string_equal(kit_field(kit, "clean"), "0");
    assert_string_equal(kit_field(kit, "nonce"), NONCE_2);
}

static void renewal_never_makes_a_key(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    redis_server_run(kit->server, "DEL %s", kit->names.lease);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_NO);
    assert_false(kit->reply.held);
    assert_int_equal(kit->reply.reason, REASON_RENEWAL_REFUSED);
    assert_string_equal(kit_value(kit), "");
    request.raise_token = true;
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_NO);
    assert_string_equal(kit_value(kit), "");
}

static void renewal_extends(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    kit_age(kit);
    int64_t end = kit_number(kit, "end");
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit_pttl(kit) > 9000);
    assert_true(kit_number(kit, "end") > end);
}

static void raise_mints_anew(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    request.raise_token = true;
    request.seen_token = UINT64_C(99999999999998);
    kit_expect(kit, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(kit->reply.token == UINT64_C(99999999999999)); /* 14 digits, exact everywhere */
    assert_string_equal(kit_field(kit, "tok"), "99999999999999");
    assert_string_equal(kit_value(kit),
                        "01010101010101010101010101010101 99999999999999 10000 pod-a");
    assert_true(kit_pttl(kit) > 9000);
    request.seen_token = UINT64_C(100000000000000);
    assert_false(kit_run(kit, STORE_RENEWED, &request));
    assert_non_null(strstr(kit->error, "GAVELTOKEN"));
    assert_string_equal(kit_field(kit, "tok"), "99999999999999");
}

static void tokens_are_exact(void **state) {
    struct kit *kit = *state;
    uint64_t seen[] = {UINT64_C(9999999999999), UINT64_C(10000000000001), UINT64_C(99999999999999)};
    for (size_t i = 0; i < 3; i++) {
        struct store_request request = kit_request((unsigned char)(i + 1));
        request.seen_token = seen[i];
        request.token = kit_expect(kit, STORE_ACQUIRED, &request, OUTCOME_YES)->token;
        memcpy(request.server, kit->reply.server, sizeof request.server);
        assert_true(request.token == seen[i] + 1);
        assert_true((uint64_t)kit_number(kit, "tok") == seen[i] + 1);
        struct store_request other = kit_request(100);
        assert_true(kit_expect(kit, STORE_ACQUIRED, &other, OUTCOME_NO)->token == seen[i] + 1);
        kit_give(kit, request, true);
        assert_string_equal(kit_field(kit, "clean"), "1"); /* compared without loss */
    }
    struct store_request request = kit_request(9);
    assert_false(kit_run(kit, STORE_ACQUIRED, &request)); /* recorded + 1 is above 10^14 */
    assert_non_null(strstr(kit->error, "GAVELTOKEN"));
    assert_non_null(strstr(kit->error, "recorded 100000000000000 "));
    assert_string_equal(kit_value(kit), "");
}

static void floor_and_clock_are_respected(void **state) {
    struct kit *kit = *state;
    struct store_request request = kit_take(kit, 1);
    assert_true(request.token == (uint64_t)kit->reply.server_now_us / 1000);
    kit_give(kit, request, true);
    kit->setup.token_floor = UINT64_C(77777777777777);
    request = kit_take(kit, 2);
    assert_true(request.token == UINT64_C(77777777777777));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(grant_is_written_whole),
        KIT_TEST(end_covers_an_older_lease),
        KIT_TEST(end_covers_the_longest_ttl),
        KIT_TEST(mark_needs_the_very_grant),
        KIT_TEST(record_must_be_whole_and_of_this_server),
        KIT_TEST(record_behind_proves_nothing),
        KIT_TEST(end_is_told),
        KIT_TEST(kept_answer_is_given_again),
        KIT_TEST(kept_answer_needs_its_record),
        KIT_TEST(renewal_mends_the_record),
        KIT_TEST(renewal_never_makes_a_key),
        KIT_TEST(renewal_extends),
        KIT_TEST(raise_mints_anew),
        KIT_TEST(tokens_are_exact),
        KIT_TEST(floor_and_clock_are_respected),
    };
    return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
