#include "local_kit.h"

#include "election/election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] = "gavel-record 1\n"
                           "token 1796157414879\n"
                           "clean 1\n"
                           "longest_ttl_ns 10000000000\n"
                           "nonce 000102030405060708090a0b0c0d0eff\n"
                           "written_ms 1796157414880\n"
                           "holder pod-a\n"
                           "end\n";

/* Parses a copy that ends exactly where the text does, so that a sanitizer sees an overrun. */
static bool parse(const char *text, size_t length, struct record *record, const char **why) {
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    bool parsed = record_parse(copy, length, record, why);
    free(copy);
    return parsed;
}

static void good_record_is_read(void **state) {
    (void)state;
    struct record record;
    const char *why = NULL;
    assert_true(parse(good, sizeof good - 1, &record, &why));
    assert_true(record.token == UINT64_C(1796157414879));
    assert_true(record.clean);
    assert_true(record.longest_ttl_ns == 10 * NS_PER_S);
    assert_int_equal(record.nonce[1], 0x01);
    assert_int_equal(record.nonce[15], 0xff);
    assert_true(record.written_ms == INT64_C(1796157414880));
    assert_string_equal(record.holder, "pod-a");

    char text[RECORD_TEXT_MAX];
    assert_int_equal(record_format(&record, text), sizeof good - 1);
    assert_memory_equal(text, good, sizeof good - 1);
}

static void largest_record_fits(void **state) {
    (void)state;
    struct record record = {
        .token = TOKEN_MAX, .longest_ttl_ns = 3600 * NS_PER_S, .written_ms = 999999999999999999};
    struct record read;
    const char *why = NULL;
    char text[RECORD_TEXT_MAX];
    memset(record.nonce, 0xff, sizeof record.nonce);
    memset(record.holder, 'x', IDENTITY_MAX);
    size_t length = record_format(&record, text);
    assert_true(parse(text, length, &read, &why));
    assert_string_equal(read.holder, record.holder);
    assert_true(read.token == TOKEN_MAX);
}

static void cut_record_is_refused(void **state) {
    (void)state;
    for (size_t length = 0; length < sizeof good - 1; length++) {
        struct record record;
        const char *why = NULL;
        assert_false(parse(good, length, &record, &why));
        assert_non_null(why);
    }
}

static void record_with_more_is_refused(void **state) {
    (void)state;
    struct record record;
    const char *why = NULL;
    char text[1024];
    snprintf(text, sizeof text, "%s\n", good);
    assert_false(parse(text, strlen(text), &record, &why));
    memset(text, 'x', sizeof text);
    memcpy(text, good, sizeof good - 1);
    assert_false(parse(text, sizeof text, &record, &why));
    assert_non_null(strstr(why, "too long"));
}

/* The good one with one line replaced. */
static bool parse_with(const char *line, const char *replacement) {
    char text[RECORD_TEXT_MAX + 200];
    struct record record;
    const char *why = NULL;
    const char *at = strstr(good, line);
    assert_non_null(at);
    const char *rest = strchr(at, '\n') + 1;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, replacement, rest);
    return parse(text, strlen(text), &record, &why);
}

static void strange_values_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *line, *replacement;
        bool good;
    } cases[] = {
        {"token", "token 1\n", true},
        {"token", "token 100000000000000\n", true},
        {"token", "token 100000000000001\n", false},
        {"token", "token 0\n", false},
        {"token", "token 01\n", false},
        {"token", "token -1\n", false},
        {"token", "token +1\n", false},
        {"token", "token 1 \n", false},
        {"token", "token  1\n", false},
        {"token", "token \n", false},
        {"token", "token 99999999999999999999999\n", false},
        {"token", "tokens 1\n", false},
        {"token", "", false},
        {"clean", "clean 0\n", true},
        {"clean", "clean 2\n", false},
        {"clean", "clean true\n", false},
        {"longest", "longest_ttl_ns 3600000000000\n", true},
        {"longest", "longest_ttl_ns 3600000000001\n", false},
        {"longest", "longest_ttl_ns 0\n", false},
        {"nonce", "nonce 000102030405060708090a0b0c0d0e0\n", false},
        {"nonce", "nonce 000102030405060708090A0b0c0d0e0f\n", false},
        {"nonce", "nonce 000102030405060708090a0b0c0d0e0f0\n", false},
        {"holder", "holder ?\n", true},
        {"holder", "holder \n", false},
        {"holder", "holder a b\n", false},
        {"holder", "holder a\"b\n", false},
        {"holder", "holder a\x7f\n", false},
        {"holder", "holder \xc3\xa4\n", false},
        {"gavel", "gavel-record 2\n", false},
        {"gavel", "gavel-record 11\n", false},
        {"gavel", "something else\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse_with(cases[i].line, cases[i].replacement) != cases[i].good) {
            fail_msg("%s", cases[i].replacement);
        }
    }
    char line[8 + IDENTITY_MAX + 3] = "holder ";
    memset(line + 7, 'x', IDENTITY_MAX + 1);
    memcpy(line + 7 + IDENTITY_MAX + 1, "\n", 2);
    assert_false(parse_with("holder", line));
}

static void bytes_that_are_no_text_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char text[sizeof good];
        struct record record;
        const char *why = NULL;
        memcpy(text, good, sizeof good);
        text[i] = '\0';
        assert_false(parse(text, sizeof good - 1, &record, &why));
    }
}

static void identity_that_cannot_be_shown_is_a_question_mark(void **state) {
    (void)state;
    static const char *const holders[] = {"", "a b", "a\nend", "\xff"};
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
        struct record record = {.token = 1, .longest_ttl_ns = 1};
        struct record read;
        const char *why = NULL;
        char text[RECORD_TEXT_MAX];
        snprintf(record.holder, sizeof record.holder, "%s", holders[i]);
        assert_true(parse(text, record_format(&record, text), &read, &why));
        assert_string_equal(read.holder, "?");
    }
}

/* What a grant makes of a spoiled record. */
static void spoiled_record_proves_nothing(void **state) {
    struct local_kit *kit = *state;
    char zeros[600] = {0};
    static const char *const texts[] = {"", "gavel-record 1\n", good};
    for (size_t i = 0; i <= sizeof texts / sizeof texts[0]; i++) {
        const char *text = i < 3 ? texts[i] : zeros;
        size_t length = i < 3 ? strlen(text) : sizeof zeros;
        kit_write(kit, "a.record", text, length);
        struct lock_job job = kit_take(&kit->locks[0], 1);
        bool is_good = text == good;
        assert_int_equal(job.event.reply.prior, is_good ? PRIOR_CLEAN : PRIOR_NONE);
        assert_int_equal(job.event.reply.doubt, is_good ? DOUBT_NONE : DOUBT_NO_RECORD);
        assert_int_equal(job.note.text[0] != '\0', !is_good); /* it is told */
        assert_true(kit_record(kit).token == job.event.reply.token);
        lock_drop(&kit->locks[0]);
    }
}

static void what_is_recorded(void **state) {
    struct local_kit *kit = *state;
    struct lock_job job = kit_take(&kit->locks[0], 7);
    struct record record = kit_record(kit);
    assert_true(record.token == job.event.reply.token);
    assert_false(record.clean);
    assert_true(record.longest_ttl_ns == KIT_TTL_NS);
    assert_memory_equal(record.nonce, kit_request(7).nonce, NONCE_BYTES);
    assert_string_equal(record.holder, "one");
    assert_true(record.written_ms > 0);
    kit_give(&kit->locks[0], 7);
    assert_true(kit_record(kit).clean);
    assert_true(kit_record(kit).token == record.token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_record_is_read),
        cmocka_unit_test(largest_record_fits),
        cmocka_unit_test(cut_record_is_refused),
        cmocka_unit_test(record_with_more_is_refused),
        cmocka_unit_test(strange_values_are_refused),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(identity_that_cannot_be_shown_is_a_question_mark),
        LOCAL_TEST(spoiled_record_proves_nothing),
        LOCAL_TEST(what_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
