#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board_desk.h"

#include <jansson.h>

static void expect_json(struct desk *desk, struct board_entry *entry, const char *expected) {
    struct answer answer = board_answer(&desk->board, entry);
    char *json = board_json(&desk->board, entry, &answer);
    assert_string_equal(json, expected);
    free(json);
}

static void test_json_of_a_leader(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    lead(entry, 60 * NS_PER_S);
    entry->view.since_real_ns = INT64_C(1796157414879) * NS_PER_MS + 999999;
    entry->view.index = 17;
    entry->view.granted_ms = INT64_C(1796157410001);
    entry->view.holder_since_ms = 5; /* another's, not shown */
    entry->view.safety = FAILOVER_SYNCHRONOUS;
    expect_json(desk, entry,
                "{\"election\":\"billing\",\"namespace\":\"default\",\"identity\":\"pod-a\","
                "\"state\":\"leader\",\"leader\":true,\"token\":1796157414879,"
                "\"valid_for_ms\":2000,\"holder\":\"pod-a\","
                "\"since\":\"2026-12-01T20:36:54.879Z\",\"reason\":\"renewed\",\"warnings\":[],"
                "\"index\":17,\"store\":\"redis\","
                "\"lock_space\":\"run-id/0/gavel:{default/0}\",\"mode\":\"correctness\","
                "\"detail\":\"\",\"holder_since\":\"2026-12-01T20:36:50.001Z\","
                "\"failover_safety\":\"synchronous\"}");
}

static void test_json_of_a_follower(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[1];
    desk->board.lock_space = NULL;
    desk->board.process_warnings = WARNING_LISTENER_EXPOSED;
    entry->view.state = STATE_FOLLOWER;
    entry->view.reason = REASON_HELD_BY_OTHER;
    entry->view.token = 5; /* not shown */
    entry->view.warnings = WARNING_IDENTITY_NOT_UNIQUE | WARNING_OVERLAP_POSSIBLE;
    entry->view.since_real_ns = 7 * NS_PER_MS;
    entry->view.index = UINT64_C(9007199254740993);
    snprintf(entry->view.holder, sizeof entry->view.holder, "pod-b");
    entry->view.granted_ms = 5; /* ours, not shown */
    expect_json(desk, entry,
                "{\"election\":\"mail\",\"namespace\":\"default\",\"identity\":\"pod-a\","
                "\"state\":\"follower\",\"leader\":false,\"token\":null,\"valid_for_ms\":0,"
                "\"holder\":\"pod-b\",\"since\":\"1970-01-01T00:00:00.007Z\","
                "\"reason\":\"held-by-other\",\"warnings\":[\"identity-not-unique\","
                "\"listener-exposed\",\"overlap-possible\"],\"index\":9007199254740993,"
                "\"store\":\"redis\",\"lock_space\":\"\",\"mode\":\"correctness\",\"detail\":\"\","
                "\"holder_since\":null,\"failover_safety\":null}");
}

static void test_json_is_always_json(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    entry->view.state = STATE_FOLLOWER;
    desk->board.identity = "a\"b\n";
    snprintf(entry->view.holder, sizeof entry->view.holder, "\xff\xfe");
    struct answer answer = board_answer(&desk->board, entry);
    char *text = board_json(&desk->board, entry, &answer);
    assert_null(strchr(text, '\n'));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "identity")), "a\"b\n");
    assert_string_equal(json_string_value(json_object_get(json, "holder")), "?");
    json_decref(json);
    free(text);
}

/* Strings that have to be escaped are the library's; the buffer grows; no number is too long. */
static void test_json_of_anything(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    static const char *const names[] = {"",
                                        "\x7f",
                                        "\"",
                                        "\\",
                                        "\t\x01",
                                        "\xc3\xa4\xe2\x82\xac",
                                        "plain \"text\" to its end",
                                        "cut \xc3"};
    char space[400];
    memset(space, 'x', sizeof space);
    space[sizeof space - 1] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        desk->board.namespace_ = names[i];
        desk->board.mode = space;
        desk->board.store_kind = space;
        entry->name = space;
        entry->view.index = UINT64_MAX >> 1;
        entry->view.since_real_ns = INT64_MAX;
        entry->view.safety = FAILOVER_NONE;
        struct answer answer = board_answer(&desk->board, entry);
        char *text = board_json(&desk->board, entry, &answer);
        json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        assert_int_equal(json_object_size(json), 18);
        json_t *same = json_string(names[i]);
        assert_string_equal(json_string_value(json_object_get(json, "namespace")),
                            same != NULL ? names[i] : "?");
        assert_string_equal(json_string_value(json_object_get(json, "store")), space);
        assert_int_equal(json_integer_value(json_object_get(json, "index")), INT64_MAX);
        assert_string_equal(json_string_value(json_object_get(json, "since")),
                            "2262-04-11T23:47:16.854Z");
        char *again = json_dumps(json, JSON_COMPACT);
        assert_string_equal(text, again);
        free(again);
        json_decref(same);
        json_decref(json);
        free(text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_json_of_a_leader),
        TEST(test_json_of_a_follower),
        TEST(test_json_is_always_json),
        TEST(test_json_of_anything),
    };
    return cmocka_run_group_tests_name("board_json", tests, NULL, NULL);
}
