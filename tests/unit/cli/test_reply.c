#include "cli/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_leader(void **state) {
    (void)state;
    struct reply reply = reply_parse("leader 1796157414879 2000 123456789012345");
    assert_int_equal(reply.kind, REPLY_LEADER);
    assert_int_equal(reply.token, INT64_C(1796157414879));
    assert_int_equal(reply.valid_ns, INT64_C(2000000000));
    assert_int_equal(reply.deadline_ns, INT64_C(123456789012345));
    assert_int_equal(reply_parse("leader 100000000000000 3600000 9223372036854775807").kind,
                     REPLY_LEADER);
    assert_int_equal(reply_parse("leader 1 0 0").kind, REPLY_LEADER);
}

static void a_follower(void **state) {
    (void)state;
    struct reply reply = reply_parse("follower pod-a~00112233445566778899aabbccddeeff");
    assert_int_equal(reply.kind, REPLY_FOLLOWER);
    assert_string_equal(reply.holder, "pod-a~00112233445566778899aabbccddeeff");
    reply = reply_parse("follower -");
    assert_int_equal(reply.kind, REPLY_FOLLOWER);
    assert_string_equal(reply.holder, "-");
}

static void an_error(void **state) {
    (void)state;
    struct reply reply = reply_parse("error name-needed there are several elections: name one");
    assert_int_equal(reply.kind, REPLY_ERROR);
    assert_string_equal(reply.code, "name-needed");
    assert_string_equal(reply.text, "there are several elections: name one");
    assert_true(reply_blames_name(&reply));
    reply = reply_parse("error unknown-election no");
    assert_true(reply_blames_name(&reply));
    reply = reply_parse("error busy");
    assert_int_equal(reply.kind, REPLY_ERROR);
    assert_string_equal(reply.text, "");
    assert_false(reply_blames_name(&reply));
    reply = reply_parse("error busy a\x1B[2J\xC3\xA4");
    assert_string_equal(reply.text, "a?[2J??");
    char line[2000] = "error busy ";
    memset(line + strlen(line), 'x', 1500);
    reply = reply_parse(line);
    assert_int_equal(reply.kind, REPLY_ERROR);
    assert_int_equal(strlen(reply.text), REPLY_TEXT_MOST);
}

static void anything_else_is_bad(void **state) {
    (void)state;
    char overlong[400] = "follower ";
    memset(overlong + strlen(overlong), 'x', 162);
    const char *const lines[] = {
        "",
        " ",
        "leader",
        "leader ",
        "leader 1",
        "leader 1 2",
        "leader 1 2 ",
        "leader 1 2 3 ",
        "leader 1 2 3 4",
        "leader  1 2 3",
        "leader 0 2 3",
        "leader -1 2 3",
        "leader 1 -2 3",
        "leader +1 2 3",
        "leader 0x1 2 3",
        "leader 1 2 3\r",
        "leader 1.0 2 3",
        "leader 100000000000001 2000 3",
        "leader 18446744073709551617 2000 3",
        "leader 1 3600001 3",
        "leader 1 2000 9223372036854775808",
        "leader 99999999999999999999999999 99999999999999999999999 9999999999999999999999",
        "leader a b c",
        "Leader 1 2 3",
        "xleader 1 2 3",
        " leader 1 2 3",
        "leader\t1 2 3",
        "follower",
        "follower ",
        "follower a b",
        "follower a ",
        "follower  a",
        "follower \x1B[31m",
        "follower \xC3\xA4",
        "error",
        "error ",
        "error  x",
        "error toooooooooooooooooooooooooooooo-long x",
        "ok",
        "{\"state\":\"leader\"}",
        overlong,
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (reply_parse(lines[i]).kind != REPLY_BAD) {
            fail_msg("taken: \"%s\"", lines[i]);
        }
    }
    overlong[strlen(overlong) - 1] = '\0';
    assert_int_equal(reply_parse(overlong).kind, REPLY_FOLLOWER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader),
        cmocka_unit_test(a_follower),
        cmocka_unit_test(an_error),
        cmocka_unit_test(anything_else_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
