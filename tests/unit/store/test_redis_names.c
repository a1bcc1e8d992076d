#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/names.h"

#include <string.h>

static void names_of_an_election(void **state) {
    (void)state;
    struct redis_names names;
    char space[REDIS_NAME_SIZE];
    assert_true(redis_names_init(&names, "ns", "one"));
    assert_string_equal(names.space, "gavel:{ns/one}");
    assert_string_equal(names.lease, "gavel:{ns/one}:lease");
    assert_string_equal(names.record, "gavel:{ns/one}:record");
    assert_string_equal(names.channel, "gavel:{ns/one}:released");
    redis_names_space(space, sizeof space, "ns", "one");
    assert_string_equal(space, names.space);
    char longest[240];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_false(redis_names_init(&names, "ns", longest));
}

static void a_channel_names_its_election(void **state) {
    (void)state;
    static const struct {
        const char *channel;
        const char *election; /* NULL: none */
    } cases[] = {
        {"gavel:{ns/one}:released", "one"},
        {"gavel:{ns/one}:released}:released", "one}:released"}, /* no election is called so */
        {"gavel:{ns/}:released", ""},
        {"gavel:{ns/one}:lease", NULL},
        {"gavel:{other/one}:released", NULL},
        {"gavel:{ns/:released", NULL},
        {"gavel:{ns}:released", NULL},
        {"avel:{ns/one}:released", NULL},
        {"gavel:{ns/one}:releasedx", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = 0;
        const char *found =
            redis_names_election(cases[i].channel, strlen(cases[i].channel), "ns", &length);
        if (cases[i].election == NULL) {
            assert_null(found);
        } else {
            assert_non_null(found);
            assert_int_equal(length, strlen(cases[i].election));
            assert_memory_equal(found, cases[i].election, length);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_an_election),
        cmocka_unit_test(a_channel_names_its_election),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
