#include "cli/exec_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void what_is_heard(void **state) {
    (void)state;
    struct exec_line line = exec_line_parse("lease 1796157414879 2000 123456789012345 3000");
    assert_int_equal(line.kind, EXEC_LINE_LEASE);
    assert_int_equal(line.token, INT64_C(1796157414879));
    assert_int_equal(line.ms, 2000);
    assert_int_equal(line.deadline_ns, INT64_C(123456789012345));
    assert_int_equal(line.ttl_ms, 3000);
    line = exec_line_parse("revoke 77 0");
    assert_int_equal(line.kind, EXEC_LINE_REVOKE);
    assert_int_equal(line.token, 77);
    assert_int_equal(line.ms, 0);
    line = exec_line_parse("beat 10000000000");
    assert_int_equal(line.kind, EXEC_LINE_BEAT);
    assert_int_equal(line.ms, INT64_C(10000000000));
}

/* Numbers that cannot be calculated with are none, and neither is anything else of another shape.
 */
static void everything_else_is_another_line(void **state) {
    (void)state;
    const char *const lines[] = {"",
                                 "ok",
                                 "lease",
                                 "lease ",
                                 "lease 1 2 3",
                                 "lease 1 2 3 4 5",
                                 "lease 1 2 3 4 ",
                                 "lease  1 2 3 4",
                                 "lease 0 2 3 4",
                                 "lease -1 2 3 4",
                                 "lease 1 -2 3 4",
                                 "lease 1 2 -3 4",
                                 "lease +1 2 3 4",
                                 "lease 1x 2 3 4",
                                 "leases 1 2 3 4",
                                 "lease 18446744073709551617 2 3 4",
                                 "lease 100000000000001 2 3 4",
                                 "lease 1 10000000001 3 4",
                                 "lease 1 2 9223372036854775808 4",
                                 "lease 1 2 3 10000000001",
                                 "lease 1 2 3 18446744073709551617",
                                 "revoke 7",
                                 "revoke 0 5",
                                 "revoke 7 5 5",
                                 "revoke 7 9223372036854775807",
                                 "beat 0",
                                 "beat -5",
                                 "beat 10000000001",
                                 "beat 9223372036854775807",
                                 "beat 5 "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct exec_line line = exec_line_parse(lines[i]);
        if (line.kind != EXEC_LINE_OTHER) {
            print_error("%s\n", lines[i]);
        }
        assert_int_equal(line.kind, EXEC_LINE_OTHER);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_heard),
        cmocka_unit_test(everything_else_is_another_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
