#include "config/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void election_names(void **state) {
    (void)state;
    static const char *const good[] = {"a", "0", "Z.y_x-9", "billing-eu.1"};
    static const char *const wrong[] = {"",    "-a",  ".a",  "_a",       "a b", "a/b",
                                        "a,b", "a\n", "a{b", "\xC3\xA4", "a:b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(name_is_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(name_is_valid(wrong[i]));
    }
    char text[102];
    memset(text, 'a', sizeof text);
    text[100] = '\0';
    assert_true(name_is_valid(text));
    text[100] = 'a';
    text[101] = '\0';
    assert_false(name_is_valid(text));
}

static void identities(void **state) {
    (void)state;
    static const char *const good[] = {"pod-a", "host.example:1", "a~b", "(x)", "--", "\\"};
    static const char *const wrong[] = {"",     "-",   "?",   "a b",      "a\"b",
                                        "it's", "`a`", "a\t", "\xC3\xA4", "\x7F"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(name_is_identity(good[i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(name_is_identity(wrong[i]));
    }
    char text[130];
    memset(text, 'a', sizeof text);
    text[128] = '\0';
    assert_true(name_is_identity(text));
    text[128] = 'a';
    text[129] = '\0';
    assert_false(name_is_identity(text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(election_names),
        cmocka_unit_test(identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
