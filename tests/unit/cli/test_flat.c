#include "cli/flat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char answer[] =
    "{\"election\":\"billing\",\"leader\":true,\"token\":1796157414879,\"holder\":\"\",\"none\":"
    "null,\"warnings\":[\"a-b\",\"c\"],\"empty\":[], \"inner\" : {\"state\":\"wrong\"} ,"
    "\"state\":\"leader\",\"minus\":-1.5e3,\"no\":false}";

static const char *find(const char *json, const char *name) {
    static char text[256];
    return flat_find(json, name, text, sizeof text) ? text : NULL;
}

static void members_are_found(void **state) {
    (void)state;
    assert_true(flat_is_object(answer));
    assert_string_equal(find(answer, "election"), "billing");
    assert_string_equal(find(answer, "leader"), "true");
    assert_string_equal(find(answer, "token"), "1796157414879");
    assert_string_equal(find(answer, "holder"), "");
    assert_string_equal(find(answer, "none"), "null");
    assert_string_equal(find(answer, "warnings"), "a-b, c");
    assert_string_equal(find(answer, "empty"), "");
    assert_string_equal(find(answer, "state"), "leader");
    assert_string_equal(find(answer, "minus"), "-1.5e3");
    assert_string_equal(find(answer, "no"), "false");
    assert_null(find(answer, "missing"));
    assert_null(find(answer, ""));
    assert_null(find(answer, "stat"));
    assert_null(find("{}", "a"));
    assert_string_equal(find("{\"a\":1,\"a\":2}", "a"), "1");
}

static void strings_are_made_fit_for_a_terminal(void **state) {
    (void)state;
    assert_string_equal(find("{\"a\":\"\\\"\\\\\\/\"}", "a"), "\"\\/");
    assert_string_equal(find("{\"a\":\"\\u0041\\u00e4\\u20ac\"}", "a"), "A\xC3\xA4\xE2\x82\xAC");
    assert_string_equal(find("{\"a\":\"\\u001b[2J\\n\\t\\u009b\\u007f\"}", "a"), "?[2J????");
    assert_string_equal(find("{\"a\":\"\\ud83d\\ude00\\u0000\"}", "a"), "???");
    assert_string_equal(find("{\"a\":\"\xC3\xA4\x7F\x80\xC2\x9B\"}", "a"), "\xC3\xA4???");
}

static void long_values_are_cut_between_characters(void **state) {
    (void)state;
    char text[4];
    assert_true(flat_find("{\"a\":\"12\xC3\xA4\"}", "a", text, sizeof text));
    assert_string_equal(text, "12");
    assert_true(flat_find("{\"a\":\"1\xC3\xA4\"}", "a", text, sizeof text));
    assert_string_equal(text, "1\xC3\xA4");
}

static void junk_is_no_object(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "\"a\"",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{a:1}",
        "{\"a\":x}",
        "{\"a\":+1}",
        "{\"a\":\"}",
        "{\"a\":\"\\",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":[1,]}",
        "{\"a\":[1",
        "{\"a\":[1 2]}",
        "{\"a\":{\"b\":[[[[[[[[[[[[1]]]]]]]]]]]]}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (flat_is_object(texts[i])) {
            fail_msg("taken: %s", texts[i]);
        }
    }
    assert_true(flat_is_object("{}"));
    assert_true(flat_is_object(" { } "));
    assert_true(flat_is_object("{\"a\":{\"b\":[[[1]]]}}"));
}

/* Every way to cut a good answer, and every byte of it changed. */
static void damage_is_survived(void **state) {
    (void)state;
    char text[sizeof answer];
    for (size_t length = 0; length < sizeof answer - 1; length++) {
        memcpy(text, answer, length);
        text[length] = '\0';
        assert_false(flat_is_object(text));
        (void)find(text[0] == '{' ? text : "{", "no");
    }
    for (size_t at = 0; at < sizeof answer - 1; at++) {
        for (int byte = 1; byte < 256; byte++) {
            memcpy(text, answer, sizeof answer);
            text[at] = (char)byte;
            if (flat_is_object(text)) {
                (void)find(text, "no");
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(strings_are_made_fit_for_a_terminal),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(junk_is_no_object),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
