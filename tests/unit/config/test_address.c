#include "config/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void good_addresses(void **state) {
    (void)state;
    static const struct {
        const char *text, *host;
        unsigned port;
    } cases[] = {
        {"localhost:4040", "localhost", 4040}, {"127.0.0.1:0", "127.0.0.1", 0},
        {"0.0.0.0:65535", "0.0.0.0", 65535},   {":4041", "", 4041},
        {"[::1]:4040", "::1", 4040},           {"[::]:1", "::", 1},
        {"[fe80::1]:80", "fe80::1", 80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct listen_address address;
        char text[ADDRESS_TEXT_MAX];
        assert_true(address_parse(cases[i].text, &address));
        assert_false(address.off);
        assert_string_equal(address.host, cases[i].host);
        assert_int_equal(address.port, cases[i].port);
        assert_string_equal(address_format(&address, text), cases[i].text);
    }
    struct listen_address off;
    char text[ADDRESS_TEXT_MAX];
    assert_true(address_parse("off", &off));
    assert_true(off.off);
    assert_string_equal(address_format(&off, text), "off");
}

static void wrong_addresses(void **state) {
    (void)state;
    char overlong[400];
    memset(overlong, '1', sizeof overlong);
    memcpy(overlong + 300, ":80", 4);
    const char *const texts[] = {
        "",
        "4040",
        ":",
        "localhost",
        "localhost:",
        "localhost:x",
        ":65536",
        ":-1",
        ":+1",
        ": 80",
        ":80 ",
        "::1:80",
        "[::1]",
        "[::1",
        "::1]:80",
        "[127.0.0.1]:80",
        "[]:80",
        "[",
        "[:80",
        "example.org:80",
        "256.0.0.1:80",
        "127.1:80",
        "LOCALHOST:80",
        "Off",
        "*:80",
        "a b:80",
        ":000000080",
        "http://localhost:80",
        overlong,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct listen_address address;
        if (address_parse(texts[i], &address)) {
            fail_msg("\"%s\" was accepted", texts[i]);
        }
    }
}

static void overlaps(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool overlap;
    } cases[] = {
        {"localhost:1", "localhost:1", true},
        {"localhost:1", "localhost:2", false},
        {"localhost:0", "localhost:0", false},
        {"off", "off", false},
        {"localhost:1", "off", false},
        {"localhost:1", ":1", true},
        {"localhost:1", "127.0.0.1:1", true},
        {"localhost:1", "[::1]:1", true},
        {"localhost:1", "127.0.0.2:1", false},
        {"127.0.0.1:1", "[::1]:1", false},
        {"0.0.0.0:1", "127.0.0.1:1", true},
        {"0.0.0.0:1", "[::1]:1", false},
        {"[::]:1", "127.0.0.1:1", true},
        {"[::]:1", "[::1]:1", true},
        {"[::1]:1", "[0:0::1]:1", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {":1", ":1", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct listen_address a;
        struct listen_address b;
        assert_true(address_parse(cases[i].a, &a) && address_parse(cases[i].b, &b));
        assert_int_equal(address_overlaps(&a, &b), cases[i].overlap);
        assert_int_equal(address_overlaps(&b, &a), cases[i].overlap);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(wrong_addresses),
        cmocka_unit_test(overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
