#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *escape(const char *text) {
    static char out[256];
    size_t used = 0;
    while (*text != '\0') {
        size_t length;
        text += text_escape_one(text, out + used, &length);
        used += length;
    }
    out[used] = '\0';
    return out;
}

static void plain_text_stays(void **state) {
    (void)state;
    assert_string_equal(escape("pod-a 1 ~"), "pod-a 1 ~");
    assert_string_equal(escape("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBD"),
                        "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBD");
}

static void controls_are_escaped(void **state) {
    (void)state;
    assert_string_equal(escape("a\nb\tc\rd"), "a\\nb\\tc\\rd");
    assert_string_equal(escape("\x1B[31m\x7F\x01"), "\\u001b[31m\\u007f\\u0001");
    assert_string_equal(escape("\"\\"), "\\\"\\\\");
    /* C1: CSI as one character, what a terminal takes for ESC [ */
    assert_string_equal(escape("\xC2\x9B\xC2\xA0"), "\\u009b\xC2\xA0");
}

static void what_is_not_utf8_is_replaced(void **state) {
    (void)state;
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        {"\x80", "\\ufffd"},                                  /* a continuation alone */
        {"\xC0\xAF", "\\ufffd\\ufffd"},                       /* overlong */
        {"\xE0\x80\xAF", "\\ufffd\\ufffd\\ufffd"},            /* overlong */
        {"\xF0\x80\x80\xAF", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* overlong */
        {"\xED\xA0\x80", "\\ufffd\\ufffd\\ufffd"},            /* a surrogate */
        {"\xF4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond U+10FFFF */
        {"\xE2\x82", "\\ufffd\\ufffd"},                       /* cut off */
        {"\xE2\x82x", "\\ufffd\\ufffdx"},
        {"\xF0\x9F\x98", "\\ufffd\\ufffd\\ufffd"},
        {"\xFF\xFE", "\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(escape(cases[i].text), cases[i].escaped);
    }
}

static void quotes_are_for_people(void **state) {
    (void)state;
    char out[64];
    assert_string_equal(text_quote("", out, sizeof out), "\"\"");
    assert_string_equal(text_quote("a\"b\\c", out, sizeof out), "\"a\"b\\c\"");
    assert_string_equal(text_quote("a\nb", out, sizeof out), "\"a\\nb\"");
}

static void what_does_not_fit_is_cut(void **state) {
    (void)state;
    for (size_t size = 6; size < 40; size++) {
        char out[64];
        memset(out, 'X', sizeof out);
        text_quote("0123456789\n0123456789\xE2\x82\xAC", out, size);
        size_t length = strlen(out);
        assert_true(length < size);
        assert_int_equal(out[size], 'X');
        assert_int_equal(out[0], '"');
        assert_int_equal(out[length - 1], '"');
        if (size < 28) {
            assert_string_equal(out + length - 4, "...\"");
        } else {
            assert_string_equal(out, "\"0123456789\\n0123456789\xE2\x82\xAC\"");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(controls_are_escaped),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(quotes_are_for_people),
        cmocka_unit_test(what_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
