#include "publish/http_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define S INT64_C(1000000000)

static void good_ones(void **state) {
    static const struct {
        const char *query;
        bool has_index;
        uint64_t index;
        int64_t wait_ns;
    } cases[] = {
        {NULL, false, 0, HTTP_WAIT_MOST_NS},
        {"", false, 0, HTTP_WAIT_MOST_NS},
        {"index=17", true, 17, HTTP_WAIT_MOST_NS},
        {"index=17&wait=10s", true, 17, 10 * S},
        {"wait=1.5s&index=0", true, 0, 3 * S / 2},
        {"index=1&wait=0s", true, 1, 0},
        {"index=1&wait=30s", true, 1, HTTP_WAIT_MOST_NS},
        {"index=1&wait=10h", true, 1, HTTP_WAIT_MOST_NS},
        {"index=18446744073709551615", true, UINT64_MAX, HTTP_WAIT_MOST_NS},
        {"index=00000000000000000017", true, 17, HTTP_WAIT_MOST_NS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct http_query query;
        const char *problem = NULL;
        assert_true(http_query_parse(&query, cases[i].query, &problem));
        assert_int_equal(query.has_index, cases[i].has_index);
        assert_int_equal(query.index, cases[i].index);
        assert_int_equal(query.wait_ns, cases[i].wait_ns);
    }
}

static void bad_ones(void **state) {
    static const struct {
        const char *query;
        const char *word;
    } cases[] = {
        {"index", "index="},
        {"index=", "index="},
        {"index=x", "number"},
        {"index=-1", "number"},
        {"index=+1", "number"},
        {"index=1.5", "number"},
        {"index=%31", "number"},
        {"index=18446744073709551616", "number"},
        {"index=000000000000000000017", "number"},
        {"index=1&index=2", "once"},
        {"index=1&", "last"},
        {"&index=1", "index="},
        {"index=1&&wait=1s", "index="},
        {"wait=1s", "index"},
        {"index=1&wait=", "wait="},
        {"index=1&wait=10", "unit"},
        {"index=1&wait=-1s", "unit"},
        {"index=1&wait=1s&wait=1s", "once"},
        {"index=1&wait=10s\x01", "unit"},
        {"index=1&wait=11111111111111111111111111111111s", "unit"},
        {"Index=1", "index="},
        {"x=1", "index="},
        {"index=1;wait=1s", "number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct http_query query;
        const char *problem = NULL;
        if (http_query_parse(&query, cases[i].query, &problem)) {
            fail_msg("accepted: %s", cases[i].query);
        }
        assert_non_null(problem);
        if (strstr(problem, "bad query") == NULL || strstr(problem, cases[i].word) == NULL) {
            fail_msg("%s: %s", cases[i].query, problem);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(bad_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
