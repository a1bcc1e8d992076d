/* Whom a TLS session trusts: the chain of the server's certificate, and its names. */
#include "tls_test.h"

#include <stdio.h>
#include <string.h>

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void names_are_verified(void **state) {
    (void)state;
    static const struct {
        const char *names, *host;
        bool good;
    } cases[] = {
        {"DNS:redis.example", "redis.example", true},
        {"DNS:redis.example", "Redis.EXAMPLE.", true},
        {"DNS:a.example,DNS:redis.example", "redis.example", true},
        {"DNS:*.example.org", "redis.example.org", true},
        {"DNS:*.example.org", "a.redis.example.org", false},
        {"DNS:r*.example.org", "redis.example.org", false},
        {"DNS:redis.example", "other.example", false},
        {"DNS:redis.example", "redis.example.other", false},
        {"DNS:redis.example", "edis.example", false},
        {"DNS:127.0.0.1", "127.0.0.1", false}, /* an address is no name */
        {"IP:127.0.0.1", "127.0.0.1", true},
        {"IP:127.0.0.1", "127.0.0.2", false},
        {"IP:127.0.0.1", "localhost", false},
        {"IP:::1", "::1", true},
        {"IP:::1", "0:0:0:0:0:0:0:1", true},
        {"IP:fe80::1", "fe80::1%eth0", true},
        {"IP:fe80::2", "fe80::1%eth0", false},
    };
    struct store_tls files = tls_test_trust(&tls_ids.ca, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tls_plan named = {.file = "named", .names = cases[i].names};
        struct tls_identity server = tls_kit_issue(&tls_ids.ca, &named);
        tls_pair_begin(&tls_pair, &server, 0, NULL);
        tls_pair_connect(&tls_pair, &files, cases[i].host);
        tls_pair_run(&tls_pair);
        if (tls_pair.opened != cases[i].good) {
            fail_msg("%s for %s", cases[i].names, cases[i].host);
        }
        if (!cases[i].good) {
            tls_test_broken("not for");
            assert_non_null(strstr(redis_tls_problem(tls_pair.session), cases[i].host));
        }
        /* The server is told which name was asked for; an address is none. */
        const char *asked = SSL_get_servername(tls_pair.server, TLSEXT_NAMETYPE_host_name);
        bool address = strspn(cases[i].host, "0123456789.") == strlen(cases[i].host) ||
                       strchr(cases[i].host, ':') != NULL;
        assert_true((asked == NULL) == address);
        tls_pair_end(&tls_pair);
        tls_kit_free(&server);
    }
}

static void a_host_that_nothing_can_be_for_is_refused(void **state) {
    (void)state;
    static const char *const hosts[] = {"", ".", "%eth0"};
    struct store_tls files = tls_test_trust(&tls_ids.ca, NULL);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        tls_pair_begin(&tls_pair, &tls_ids.server, 0, NULL);
        tls_pair_connect(&tls_pair, &files, hosts[i]);
        tls_test_broken("no certificate can be for");
        tls_pair_end(&tls_pair);
    }
}

static void chains_are_verified(void **state) {
    (void)state;
    static const struct {
        int from_s, till_s;
        const char *word;
    } times[] = {{-7200, -3600, "expired"}, {3600, 7200, "not valid yet"}};
    for (size_t i = 0; i < 4; i++) {
        struct tls_plan timed = {.file = "timed", .names = "DNS:redis.example"};
        timed.from_s = times[i / 2].from_s;
        timed.till_s = times[i / 2].till_s;
        struct tls_identity server = tls_kit_issue(&tls_ids.ca, &timed);
        tls_test_begin(&server, versions[i % 2], NULL, NULL);
        tls_pair_run(&tls_pair);
        assert_false(tls_pair.opened);
        tls_test_broken(times[i / 2].word);
        assert_false(SSL_is_init_finished(tls_pair.server));
        tls_pair_end(&tls_pair);
        tls_kit_free(&server);
    }
    for (size_t i = 0; i < 4; i++) {
        struct tls_plan named = {.file = "foreign", .names = "DNS:redis.example"};
        struct tls_identity server = tls_kit_issue(i < 2 ? &tls_ids.other_ca : NULL, &named);
        tls_test_begin(&server, versions[i % 2], NULL, NULL);
        tls_pair_run(&tls_pair);
        assert_false(tls_pair.opened);
        tls_test_broken("--tls-ca");
        tls_pair_end(&tls_pair);
        tls_kit_free(&server);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_verified),
        cmocka_unit_test(a_host_that_nothing_can_be_for_is_refused),
        cmocka_unit_test(chains_are_verified),
    };
    return cmocka_run_group_tests(tests, tls_test_make, tls_test_free);
}
