#include "config/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void secrets_are_hidden(void **state) {
    (void)state;
    static const struct {
        const char *url, *masked;
    } cases[] = {
        {"redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"},
        {"redis://user:hunter2@host:6379", "redis://user:***@host:6379"},
        {"redis://:hunter2@host", "redis://:***@host"},
        {"redis://hunter2@host", "redis://***@host"},
        {"redis://u:a/b?c#d@e@host/0", "redis://u:***@host/0"},
        {"redis://u:a:b@host", "redis://u:***@host"},
        {"redis://u:a://b@host", "redis://u:***@host"},
        {"redis://u:a,b@host", "redis://u:***@host"},
        {"redis+unix://u:hunter2@/run/redis.sock", "redis+unix://u:***@/run/redis.sock"},
        {"redlock:redis://:p1@a,redis://b,rediss://u:p2@c",
         "redlock:redis://:***@a,redis://b,rediss://u:***@c"},
        {"postgres://u:p@h/db?sslmode=require&password=x&a=b",
         "postgres://u:***@h/db?sslmode=require&password=***&a=***"},
        {"postgres://u:@h/db?passwor%64=sekret4&port=5",
         "postgres://u:***@h/db?passwor%64=***&port=5"},
        {"postgresql://h/d?%73slpass%77ord=x&sslmod%65=require",
         "postgresql://h/d?%73slpass%77ord=***&sslmod%65=require"},
        {"postgres://h/d?p%61ss%77ord=x:y@z", "postgres://h/d?p%61ss%77ord=***:***@z"},
        {"postgres://h/d?options=-c%20x=y&hosts=a&user",
         "postgres://h/d?options=***&hosts=***&user"},
        {"postgres://h/d?dbname=password=x", "postgres://h/d?dbname=password=***"},
        {"redis://h?p%41ssword=x&b=y", "redis://h?p%41ssword=***&b=y"},
        {"postgres://h/d?&=&%&%6", "postgres://h/d?&=***&%&%6"},
        {"postgres://h/db?sslPassword=x", "postgres://h/db?sslPassword=***"},
        {"host=h password=x y", "host=h password=***"},
        {"redis:hunter2@host", "redis:***@host"},
        {"user:hunter2@host", "user:***@host"},
        {"hunter2@host", "***@host"},
        {"redis://", "redis://"},
        {"redis://@", "redis://***@"},
        {"@", "***@"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *masked = mask_url(cases[i].url);
        assert_string_equal(masked, cases[i].masked);
        free(masked);
    }
}

static void any_text_is_survived(void **state) {
    (void)state;
    static const char parts[][12] = {"://", "@", ":", ",", "passwor%64=", "&", "a", "redis"};
    for (unsigned seed = 0; seed < 20000; seed++) {
        char url[128] = "";
        unsigned random = seed * 2654435761U;
        for (int i = 0; i < 8; i++) {
            (void)strcat(url, parts[random >> 29]);
            random = random * 1664525U + 1013904223U;
        }
        char *masked = mask_url(url);
        assert_true(strlen(masked) <= 4 * strlen(url));
        free(masked);
        (void)url_credentials(url);
    }
}

static void credentials_are_found(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool user, password;
    } cases[] = {
        {"redis://host", false, false},
        {"redis://u@host", true, false},
        {"redis://:p@host", false, true},
        {"redis://u:p@host", true, true},
        {"redlock:redis://a,redis://u:p@b", true, true},
        {"postgres://h/d?password=x", false, true},
        {"postgres://h/d?passwor%64=x", false, true},
        {"postgres://h/d?a=x", false, false},
        {"local:/var/lib/gavel", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct url_credentials found = url_credentials(cases[i].url);
        assert_int_equal(found.user, cases[i].user);
        assert_int_equal(found.password, cases[i].password);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(any_text_is_survived),
        cmocka_unit_test(credentials_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
