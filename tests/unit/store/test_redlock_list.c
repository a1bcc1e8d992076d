#include "store/redlock/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void nodes_have_names_without_secrets(void **state) {
    (void)state;
    struct redlock_list list;
    struct error error;
    assert_true(redlock_list_claims("RedLock:x"));
    assert_false(redlock_list_claims("redis://a"));
    assert_true(redlock_list_parse("redlock:redis://u:hunter2@B.example:7000/2,"
                                   "redis://[::1],redis+unix:/run/r.sock?db=1,rediss://a",
                                   &list, &error));
    assert_int_equal(list.count, 4);
    assert_true(list.tls);
    assert_string_equal(list.names[0], "b.example:7000/2");
    assert_string_equal(list.names[1], "[::1]:6379/0");
    assert_string_equal(list.urls[3], "rediss://a");
    /* In one order, whatever the order in the URL. */
    assert_string_equal(list.all, "[::1]:6379/0,a:6379/0,b.example:7000/2,unix:/run/r.sock/1");
    redlock_list_finish(&list);
}

static void wrong_lists_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *url;
        const char *told;
    } wrong[] = {
        {"redlock:", "node 1"},
        {"redlock:redis://a,redis://b", "at least 3 nodes"},
        {"redlock:redis://a,redis://b,", "node 3"},
        {"redlock:redis://a,b,c", "node 2"},
        {"redlock:redis://a,redis://b,redis://hunter2@c:99999", "node 3"},
        {"redlock:redis://a,redis://A:6379/0,redis://c", "nodes 1 and 2"},
        {"redlock:redis://u:hunter2@a,redis://v:x@a,redis://c", "nodes 1 and 2"},
        {"redlock:redis://a,redis+sentinel://b/m,redis://c", "Sentinel"},
        {"redlock:redis+unix:/a%2Cb,redis://b,redis://c", "node 1"},
        {"redlock:redis://1,redis://2,redis://3,redis://4,redis://5,redis://6,redis://7,redis://8,"
         "redis://9,redis://10,redis://11,redis://12,redis://13,redis://14,redis://15,redis://16",
         "at most 15"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct redlock_list list;
        struct error error = {""};
        assert_false(redlock_list_parse(wrong[i].url, &list, &error));
        redlock_list_finish(&list);
        if (strstr(error.text, wrong[i].told) == NULL) {
            fail_msg("%s: %s", wrong[i].url, error.text);
        }
        assert_null(strstr(error.text, "hunter2"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_names_without_secrets),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests_name("redlock list", tests, NULL, NULL);
}
