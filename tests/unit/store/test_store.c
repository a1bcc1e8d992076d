#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/local/local.h"

#include <string.h>

static void local_urls_go_to_the_local_store(void **state) {
    (void)state;
    struct error error = {""};
    assert_ptr_equal(store_for_url("local:/var/lib/gavel", &error), &local_store_ops);
    assert_string_equal(local_store_ops.kind, "local");
    /* Wrong ones too: the store itself says what is wrong with them. */
    assert_ptr_equal(store_for_url("local:", &error), &local_store_ops);
    assert_string_equal(error.text, "");
}

static void redis_urls_go_to_the_redis_store(void **state) {
    (void)state;
    static const char *const urls[] = {"redis://localhost", "redis+unix:///run/redis.sock"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct error error = {""};
        const struct store_ops *ops = store_for_url(urls[i], &error);
        assert_non_null(ops);
        assert_string_equal(ops->kind, "redis");
    }
}

static void others_are_told_what_there_is(void **state) {
    (void)state;
    static const char *const urls[] = {"", "local", "LOCAL:/x", "mysql://u:secret@host/", "/tmp"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct error error = {""};
        assert_null(store_for_url(urls[i], &error));
        assert_non_null(strstr(error.text, "local:DIR"));
        assert_non_null(strstr(error.text, "redis://"));
        assert_null(strstr(error.text, "secret"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_urls_go_to_the_local_store),
        cmocka_unit_test(redis_urls_go_to_the_redis_store),
        cmocka_unit_test(others_are_told_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
