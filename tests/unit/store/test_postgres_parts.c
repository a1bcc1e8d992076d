/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/postgres/failure.h"
#include "store/postgres/sql.h"
#include "store/postgres/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What needs no server: keys, classes of errors, literals, URLs. */

static void keys_are_the_documented_ones(void **state) {
    (void)state;
    struct pg_key key = pg_key_make(NULL, "default", "billing");
    assert_string_equal(key.text, "-7767821819762762212"); /* sha256sum: 94332735ea831e1c... */
    assert_true(key.classid == 0x94332735 && key.objid == 0xea831e1c && key.objsubid == 1);
    assert_string_equal(pg_key_make(NULL, "default", "demo").text, "200630546973108638");
}

static void keys_of_other_names_differ(void **state) {
    (void)state;
    const char *const names[][2] = {
        {"default", "a"}, {"default", "A"}, {"default", "a."}, {"a", "default"}, {"default.a", "a"},
    };
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(pg_key_make(NULL, names[i][0], names[i][1]).text,
                                    pg_key_make(NULL, names[j][0], names[j][1]).text);
        }
    }
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void a_hundred_thousand_keys_are_all_different(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    uint64_t *keys = malloc(COUNT * sizeof *keys);
    assert_non_null(keys);
    for (unsigned i = 0; i < COUNT; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "e%u", i);
        struct pg_key key = pg_key_make(NULL, "default", name);
        keys[i] = (uint64_t)key.classid << 32 | key.objid;
    }
    qsort(keys, COUNT, sizeof *keys, compare);
    for (unsigned i = 1; i < COUNT; i++) {
        assert_true(keys[i] != keys[i - 1]);
    }
    free(keys);
}

static void explicit_keys_are_taken_as_they_are(void **state) {
    (void)state;
    struct store_pg_key form = {.form = STORE_PG_KEY_BIGINT, .whole = INT64_MIN};
    struct pg_key key = pg_key_make(&form, "default", "a");
    assert_string_equal(key.text, "-9223372036854775808");
    assert_true(key.classid == UINT32_C(0x80000000) && key.objid == 0 && key.objsubid == 1);
    form = (struct store_pg_key){.form = STORE_PG_KEY_INTS, .first = -1, .second = 42};
    key = pg_key_make(&form, "default", "a");
    assert_string_equal(key.text, "-1, 42");
    assert_true(key.classid == UINT32_MAX && key.objid == 42 && key.objsubid == 2);
}

static void errors_have_classes(void **state) {
    (void)state;
    static const struct {
        const char *sqlstate;
        enum pg_failure failure;
    } cases[] = {
        {"", PG_FAILURE_LOST},        {"57P01", PG_FAILURE_LOST},   {"57P02", PG_FAILURE_LOST},
        {"57P05", PG_FAILURE_LOST},   {"25P03", PG_FAILURE_LOST},   {"08006", PG_FAILURE_LOST},
        {"55P03", PG_FAILURE_LATER},  {"57014", PG_FAILURE_LATER},  {"57P03", PG_FAILURE_LATER},
        {"40P01", PG_FAILURE_LATER},  {"40001", PG_FAILURE_LATER},  {"53300", PG_FAILURE_LATER},
        {"28P01", PG_FAILURE_CONFIG}, {"28000", PG_FAILURE_CONFIG}, {"3D000", PG_FAILURE_CONFIG},
        {"42501", PG_FAILURE_CONFIG}, {"42883", PG_FAILURE_CONFIG}, {"42P01", PG_FAILURE_CONFIG},
        {"25006", PG_FAILURE_SERVER}, {"XX000", PG_FAILURE_OTHER},  {"99999", PG_FAILURE_OTHER},
        {"57P04", PG_FAILURE_CONFIG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(pg_failure_of(cases[i].sqlstate), cases[i].failure);
    }
    assert_int_equal(pg_failure_of(NULL), PG_FAILURE_LOST);
    assert_non_null(strstr(pg_failure_fix("3D000"), "create it"));
    assert_string_equal(pg_failure_fix(""), "");
    assert_string_equal(pg_failure_fix("57P01"), "");
}

static void words_have_classes_where_there_is_no_state(void **state) {
    (void)state;
    static const struct {
        const char *words;
        enum pg_failure failure;
        const char *fix; /* a part of it */
    } cases[] = {
        {"SSL error: certificate verify failed", PG_FAILURE_CONFIG, "sslrootcert"},
        {"server certificate for \"b\" does not match host name \"a\"", PG_FAILURE_CONFIG,
         "by the name"},
        {"server does not support SSL, but SSL was required", PG_FAILURE_CONFIG, "sslmode"},
        {"channel binding required, but SSL not in use", PG_FAILURE_CONFIG, "TLS"},
        {"root certificate file \"x\" does not exist", PG_FAILURE_CONFIG, ""},
        {"SSL error: tlsv1 alert protocol version", PG_FAILURE_CONFIG, ""},
        {"invalid sslmode value: \"maybe\"", PG_FAILURE_CONFIG, ""},
        {"session is read-only", PG_FAILURE_SERVER, ""},
        {"SSL SYSCALL error: EOF detected", PG_FAILURE_LOST, ""},
        {"SSL error: unexpected eof while reading", PG_FAILURE_LOST, ""},
        {"server closed the connection unexpectedly", PG_FAILURE_LOST, ""},
        {"Connection refused", PG_FAILURE_LOST, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *fix;
        assert_int_equal(pg_failure_of_words(cases[i].words, &fix), cases[i].failure);
        assert_true(cases[i].fix[0] == '\0' ? fix[0] == '\0' : strstr(fix, cases[i].fix) != NULL);
    }
}

static void states_are_read_in_any_language(void **state) {
    (void)state;
    char sqlstate[PG_SQLSTATE];
    char text[PG_TEXT];
    assert_true(pg_failure_read("connection to server at \"::1\", port 1 failed: FATAL:  28P01: "
                                "Passwort-Authentifizierung fehlgeschlagen\nORT:  auth.c:1\n",
                                sqlstate, text, sizeof text));
    assert_string_equal(sqlstate, "28P01");
    assert_string_equal(text, "Passwort-Authentifizierung fehlgeschlagen");
    assert_false(pg_failure_read("could not connect:  no\nsecond", sqlstate, text, sizeof text));
    assert_string_equal(sqlstate, "");
    assert_string_equal(text, "could not connect:  no");
    assert_false(pg_failure_read("connection to server at \"a\" (::1), port 1 failed: no\n",
                                 sqlstate, text, sizeof text));
    assert_string_equal(text, "no");
    char small[8];
    pg_text(small, sizeof small,
            "a\tb\xC3\xA4"
            "cdefghij");
    assert_string_equal(small, "a?b??cd");
}

static void literals_cannot_be_left(void **state) {
    (void)state;
    struct pg_sql sql = {0};
    pg_sql_literal(&sql, "a'b\\c");
    pg_sql_identifier(&sql, "x\"y");
    assert_string_equal(sql.text, "E'a''b\\\\c'\"x\"\"y\"");
    free(sql.text);
}

static void right_urls(void **state) {
    (void)state;
    static const char *const urls[] = {
        "postgres://h/db",
        "postgresql://u:p@h:1,i:2/db?target_session_attrs=read-write",
        "postgres:///db?host=/var/run/postgresql",
        "postgres:///?service=gavel",
        "postgres://u@%2Frun%2Fpg/db",
        "postgres://[::1]/db?sslmode=verify-full&sslrootcert=/x",
    };
    struct error error;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_true(pg_target_claims(urls[i]));
        if (!pg_target_check(urls[i], &error)) {
            fail_msg("%s %s", urls[i], error.text);
        }
    }
}

static void wrong_urls_name_no_secret(void **state) {
    (void)state;
    static const char *const urls[][2] = {
        {"postgres:///db", "no host"},
        {"postgres://h", "no database"},
        {"postgres://u:hunter2@[::1/db", "percent-encoded"},
        {"postgres://u:hun%zzter2@h/db", "percent-encoded"},
        {"postgres://h/db?password=hunter2&nonsense=1", "percent-encoded"},
        {"postgres://h/db?target_session_attrs=standby", "standby"},
        {"postgres://h/db?target_session_attrs=prefer-standby", "standby"},
        {"postgres://h/db?target_session_attrs=read-only", "standby"},
        {"postgres://h/db?replication=database", "replication"},
    };
    struct error error;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_true(pg_target_claims(urls[i][0]));
        assert_false(pg_target_check(urls[i][0], &error));
        assert_non_null(strstr(error.text, urls[i][1]));
        assert_null(strstr(error.text, "ter2"));
    }
}

static void targets_are_read(void **state) {
    (void)state;
    struct pg_target target;
    char text[PG_TEXT];
    assert_true(
        pg_target_read("postgres://u:p@a:1,b:2,[::1]:3/db?connect_timeout=7", &target, text));
    assert_int_equal(target.count, 3);
    assert_string_equal(target.hosts[0].host, "a");
    assert_string_equal(target.hosts[0].port, "1");
    assert_string_equal(target.hosts[1].port, "2");
    assert_string_equal(target.hosts[2].host, "::1");
    assert_string_equal(target.hosts[2].port, "3");
    assert_true(target.connect_timeout_ns == 7 * NS_PER_S);
    assert_true(pg_target_read("postgres://u:p@a/db?hostaddr=10.0.0.1", &target, text));
    assert_string_equal(target.hosts[0].address, "10.0.0.1");
    assert_string_equal(target.hosts[0].port, "5432");
    assert_true(pg_target_read("postgres://u:p@/db?host=/run/x", &target, text));
    assert_string_equal(target.hosts[0].host, "/run/x");
}

static void service_files_are_honoured(void **state) {
    (void)state;
    char path[] = "/tmp/gavel-service-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    struct pg_target target;
    char text[PG_TEXT];
    assert_non_null(file);
    (void)fputs("[gavel]\nhost=db.example\nport=6000\ndbname=x\npassword=p\n", file);
    (void)fclose(file);
    (void)setenv("PGSERVICEFILE", path, 1);
    assert_true(pg_target_read("postgres:///?service=gavel", &target, text));
    assert_string_equal(target.hosts[0].host, "db.example");
    assert_string_equal(target.hosts[0].port, "6000");
    assert_false(pg_target_read("postgres:///?service=other", &target, text));
    assert_non_null(strstr(text, "service"));
    (void)unsetenv("PGSERVICEFILE");
    (void)remove(path);
}

static void a_passfile_for_everybody_is_an_error(void **state) {
    (void)state;
    char path[] = "/tmp/gavel-passfile-XXXXXX";
    char url[128];
    struct pg_target target;
    char text[PG_TEXT];
    int fd = mkstemp(path);
    assert_int_equal(fchmod(fd, 0640), 0);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "postgres://u@h/db?passfile=%s", path);
    assert_false(pg_target_read(url, &target, text));
    assert_non_null(strstr(text, path));
    assert_non_null(strstr(text, "chmod 0600"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(pg_target_read(url, &target, text));
    (void)remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_the_documented_ones),
        cmocka_unit_test(keys_of_other_names_differ),
        cmocka_unit_test(a_hundred_thousand_keys_are_all_different),
        cmocka_unit_test(explicit_keys_are_taken_as_they_are),
        cmocka_unit_test(errors_have_classes),
        cmocka_unit_test(words_have_classes_where_there_is_no_state),
        cmocka_unit_test(states_are_read_in_any_language),
        cmocka_unit_test(literals_cannot_be_left),
        cmocka_unit_test(right_urls),
        cmocka_unit_test(wrong_urls_name_no_secret),
        cmocka_unit_test(targets_are_read),
        cmocka_unit_test(service_files_are_honoured),
        cmocka_unit_test(a_passfile_for_everybody_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
