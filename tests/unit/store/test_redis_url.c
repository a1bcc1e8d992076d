#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/url.h"

#include <string.h>

static struct redis_url parse(const char *text) {
    struct redis_url url;
    struct error error = {""};
    if (!redis_url_parse(text, &url, &error)) {
        fail_msg("%s: %s", text, error.text);
    }
    return url;
}

static void host_alone_is_enough(void **state) {
    (void)state;
    struct redis_url url = parse("redis://redis.example");
    assert_false(url.local);
    assert_string_equal(url.host, "redis.example");
    assert_int_equal(url.port, 6379);
    assert_int_equal(url.database, 0);
    assert_false(url.has_user);
    assert_false(url.has_password);
}

static void all_parts_are_read(void **state) {
    (void)state;
    struct redis_url url = parse("redis://gavel:p%40ss%3a%2F%25@10.0.0.7:6390/15");
    assert_true(url.has_user);
    assert_string_equal(url.user, "gavel");
    assert_true(url.has_password);
    assert_string_equal(url.password, "p@ss:/%");
    assert_string_equal(url.host, "10.0.0.7");
    assert_int_equal(url.port, 6390);
    assert_int_equal(url.database, 15);
}

static void user_and_password_stand_alone_too(void **state) {
    (void)state;
    struct redis_url url = parse("redis://:pw@h/");
    assert_false(url.has_user);
    assert_string_equal(url.password, "pw");
    url = parse("REDIS://user@h:1");
    assert_string_equal(url.user, "user");
    assert_false(url.has_password);
    assert_int_equal(url.port, 1);
    url = parse("redis://user:@h:65535");
    assert_true(url.has_password);
    assert_string_equal(url.password, "");
}

static void ipv6_stands_in_brackets(void **state) {
    (void)state;
    struct redis_url url = parse("redis://[::1]");
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 6379);
    url = parse("redis://u:p@[fe80::1%25eth0]:7000/1");
    assert_string_equal(url.host, "fe80::1%eth0");
    assert_int_equal(url.port, 7000);
}

static void sockets_have_paths(void **state) {
    (void)state;
    struct redis_url url = parse("redis+unix:///run/redis/redis.sock");
    assert_true(url.local);
    assert_string_equal(url.path, "/run/redis/redis.sock");
    assert_int_equal(url.database, 0);
    url = parse("redis+unix://me:s%20t@/run/a%20b?db=4");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "s t");
    assert_string_equal(url.path, "/run/a b");
    assert_int_equal(url.database, 4);
    assert_string_equal(parse("redis+unix:/run/r").path, "/run/r");
}

static void tls_is_told(void **state) {
    (void)state;
    assert_false(parse("redis://h").tls);
    struct redis_url url = parse("rediss://u:p@h:6390/3");
    assert_true(url.tls);
    assert_false(url.sentinel);
    assert_string_equal(url.host, "h");
    assert_int_equal(url.port, 6390);
    assert_int_equal(url.database, 3);
    assert_true(parse("rediss+sentinel://h/m").tls);
    assert_false(parse("redis+sentinel://h/m").tls);
}

static void sentinels_are_listed(void **state) {
    (void)state;
    struct redis_url url = parse("redis+sentinel://u:p@s1,[::1]:7,10.0.0.3:26380/my-master.1/2");
    assert_true(url.sentinel);
    assert_string_equal(url.user, "u");
    assert_int_equal(url.sentinel_count, 3);
    assert_string_equal(url.sentinels[0].host, "s1");
    assert_int_equal(url.sentinels[0].port, 26379);
    assert_string_equal(url.sentinels[1].host, "::1");
    assert_int_equal(url.sentinels[1].port, 7);
    assert_string_equal(url.sentinels[2].host, "10.0.0.3");
    assert_int_equal(url.sentinels[2].port, 26380);
    assert_string_equal(url.master, "my-master.1");
    assert_int_equal(url.database, 2);
    url = parse("redis+sentinel://s/m/");
    assert_int_equal(url.sentinel_count, 1);
    assert_string_equal(url.master, "m");
    assert_int_equal(url.database, 0);
}

static const char *const wrong[] = {
    "redis:",
    "redis:host",
    "redis://",
    "redis:///1",
    "redis://:6379",
    "redis://sEcReT:",
    "redis://:sEcReT",
    "redis://u:sEcReT/x@h",
    "redis://u:sEcReT?x@h",
    "redis://u:sEcReT#x@h",
    "redis://u:sEc@ReT@h",
    "redis://u:sEcReT:x@h",
    "redis://u:sEcReT@",
    "redis://@h",
    "redis://:@",
    "redis://u:sEcReT%@h",
    "redis://u:sEcReT%4@h",
    "redis://u:sEcReT%zz@h",
    "redis://u:sEcReT%00@h",
    "redis://u:sEcReT @h",
    "redis://u:sEcReT\x01@h",
    "redis://u:sEcReT\xc3\xa9@h",
    "redis://u:sEcReT@h:0",
    "redis://u:sEcReT@h:65536",
    "redis://u:sEcReT@h:99999999999999999999",
    "redis://u:sEcReT@h:6379x",
    "redis://u:sEcReT@h:-1",
    "redis://u:sEcReT@h:+1",
    "redis://u:sEcReT@h/x",
    "redis://u:sEcReT@h/-1",
    "redis://u:sEcReT@h/1/2",
    "redis://u:sEcReT@h/1000000000",
    "redis://u:sEcReT@h/1?db=1",
    "redis://u:sEcReT@h!/1",
    "redis://u:sEcReT@[::1",
    "redis://u:sEcReT@[]:1",
    "redis://u:sEcReT@[host]:1",
    "redis://u:sEcReT@[1.2.3.4]:1",
    "redis://u:sEcReT@[::1]6379",
    "redis://u:sEcReT@::1:6379",
    "redis+unix:",
    "redis+unix://",
    "redis+unix:///",
    "redis+unix:run/r",
    "redis+unix://u:sEcReT@host/run/r",
    "redis+unix://run/r",
    "redis+unix://u:sEcReT@/run/r?x=1",
    "redis+unix://u:sEcReT@/run/r?db=",
    "redis+unix://u:sEcReT@/run/r?db=1&db=2",
    "redis+unix://u:sEcReT@/run/r#1",
    "redis+unix://u:sEcReT@/run/r%00",
    "rediss:u:sEcReT@h",
    "rediss+unix:///u:sEcReT",
    "redis+sentinel://u:sEcReT@h",
    "redis+sentinel://u:sEcReT@h/",
    "redis+sentinel://u:sEcReT@h//1",
    "redis+sentinel://u:sEcReT@h/m/x",
    "redis+sentinel://u:sEcReT@h/m/1/2",
    "redis+sentinel://u:sEcReT@h/m%20",
    "redis+sentinel://u:sEcReT@/m",
    "redis+sentinel://u:sEcReT@h,/m",
    "redis+sentinel://u:sEcReT@,h/m",
    "redis+sentinel://u:sEcReT@h:1,h:0/m",
    "redis+sentinel://u:sEcReT@1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m",
};

static void wrong_ones_are_refused_without_a_secret(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct redis_url url;
        struct error error = {""};
        if (redis_url_parse(wrong[i], &url, &error)) {
            fail_msg("%s was accepted", wrong[i]);
        }
        assert_non_null(strstr(error.text, "store URL"));
        assert_null(strstr(error.text, "sEc"));
        assert_null(strstr(error.text, "ReT"));
    }
}

static void lengths_are_bounded(void **state) {
    (void)state;
    char text[4096];
    struct redis_url url;
    struct error error = {""};

    memset(text, 'x', sizeof text);
    memcpy(text, "redis://", 8);
    text[8 + 256] = '\0'; /* a host of 256 */
    assert_false(redis_url_parse(text, &url, &error));
    text[8 + 255] = '\0';
    assert_true(redis_url_parse(text, &url, &error));

    memset(text, 'x', sizeof text);
    memcpy(text, "redis://:", 9);
    memcpy(text + 9 + REDIS_SECRET_MAX, "@h", 3);
    assert_true(redis_url_parse(text, &url, &error));
    assert_int_equal(strlen(url.password), REDIS_SECRET_MAX);
    text[9 + REDIS_SECRET_MAX] = 'x';
    memcpy(text + 10 + REDIS_SECRET_MAX, "@h", 3);
    assert_false(redis_url_parse(text, &url, &error));

    memset(text, 'x', sizeof text);
    memcpy(text, "redis+sentinel://h/", 19);
    text[19 + REDIS_MASTER_MAX] = '\0';
    assert_true(redis_url_parse(text, &url, &error));
    text[19 + REDIS_MASTER_MAX] = 'x';
    text[20 + REDIS_MASTER_MAX] = '\0';
    assert_false(redis_url_parse(text, &url, &error));

    memset(text, 'x', sizeof text);
    memcpy(text, "redis+unix:///", 14);
    text[13 + 107] = '\0';
    assert_true(redis_url_parse(text, &url, &error));
    assert_int_equal(strlen(url.path), 107);
    text[13 + 107] = 'x';
    text[13 + 108] = '\0';
    assert_false(redis_url_parse(text, &url, &error));

    memset(text, 'x', sizeof text);
    memcpy(text, "redis://h", 9);
    text[sizeof text - 1] = '\0';
    assert_false(redis_url_parse(text, &url, &error));
}

static void only_its_own_are_claimed(void **state) {
    (void)state;
    assert_true(redis_url_claims("redis://h"));
    assert_true(redis_url_claims("redis:wrong"));
    assert_true(redis_url_claims("redis+unix:/x"));
    assert_false(redis_url_claims(""));
    assert_false(redis_url_claims("redis"));
    assert_true(redis_url_claims("rediss://h"));
    assert_true(redis_url_claims("redis+sentinel://h"));
    assert_true(redis_url_claims("REDISS+SENTINEL://h"));
    assert_false(redis_url_claims("redis+tls://h"));
    assert_false(redis_url_claims("redlock:redis://h"));
    assert_false(redis_url_claims("local:/x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_alone_is_enough),
        cmocka_unit_test(all_parts_are_read),
        cmocka_unit_test(user_and_password_stand_alone_too),
        cmocka_unit_test(ipv6_stands_in_brackets),
        cmocka_unit_test(sockets_have_paths),
        cmocka_unit_test(tls_is_told),
        cmocka_unit_test(sentinels_are_listed),
        cmocka_unit_test(wrong_ones_are_refused_without_a_secret),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(only_its_own_are_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
