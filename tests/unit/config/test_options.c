#include "config_kit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Every option of the table with good and with wrong values: one that is added to the table without
 * data here fails the first test. */

struct samples {
    const char *good[8];
    const char *wrong[16];
    bool any_text; /* nothing but the empty text is wrong */
};

#define LONG_NAME                                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aa"                                                                                           \
    "aaaaaaa" /* 101 */

static const struct samples samples[OPTION_COUNT] = {
    [OPTION_STORE] = {.good = {"redis://h", "local:/var/lib/gavel", "postgres://app@h/db"},
                      .wrong = {"http://x", "redis://wrong", "redis://a b", "x", "redis://a\n"}},
    [OPTION_STORE_USER] = {.good = {"worker"}, .any_text = true},
    [OPTION_STORE_PASSWORD] = {.good = {"hunter2", " "}, .any_text = true},
    [OPTION_TLS_CA] = {.good = {"/ca.pem"}, .any_text = true},
    [OPTION_TLS_CERT] = {.good = {"/cert.pem"}, .any_text = true},
    [OPTION_TLS_KEY] = {.good = {"/key.pem"}, .any_text = true},
    [OPTION_ELECTION] = {.good = {"a", "A.b_c-9", "a,b", "a, b ,c"},
                         .wrong = {"-a", "a b", "a/b", "a,,b", ",", "a,", "a,a", "\xC3\xA4",
                                   LONG_NAME}},
    [OPTION_NAMESPACE] = {.good = {"default", "9.x"}, .wrong = {".a", "a,b", "a{b}", LONG_NAME}},
    [OPTION_IDENTITY] = {.good = {"pod-a", "a.b:c"},
                         .wrong = {"a b", "$(POD_NAME)", "x$(Y)", "a\"b", "it's", "-", "?",
                                   "\xC3\xA4"}},
    [OPTION_TTL] = {.good = {"300ms", "10s", "1.5s", "1h", "60m"},
                    .wrong = {"10", "299ms", "2h", "0s", "-1s", "1e3s", "10 s", "61m", "1h1m",
                              "99999999999999999999s"}},
    [OPTION_MARGIN] = {.good = {"1s", "3.3s"}, .wrong = {"2", "49ms", "1h", "3.4s", "999ms"}},
    [OPTION_WAIT] = {.good = {"10s", "24h"}, .wrong = {"10", "9999ms", "25h", "0s"}},
    [OPTION_MODE] = {.good = {"correctness", "efficiency"}, .wrong = {"fast", "Correctness"}},
    [OPTION_ON_RENEW_FAILURE] = {.good = {"ride-out", "step-down"}, .wrong = {"stepdown", "1"}},
    [OPTION_VALID_FOR] = {.good = {"1ms", "2s", "1h"}, .wrong = {"2", "0s", "0.9ms", "2h"}},
    [OPTION_DRAIN] = {.good = {"none", "10s", "1h"}, .wrong = {"off", "10", "0s", "2h", "None"}},
    [OPTION_TOKEN_FLOOR] = {.good = {"0", "1796157414879", "90000000000000"},
                            .wrong = {"-1", "1.5", "90000000000001", "x", "+1", "1e3", "0x10",
                                      "99999999999999999999999"}},
    [OPTION_REDIS_WAIT_REPLICAS] = {.good = {"0", "1", "100"},
                                    .wrong = {"-1", "101", "1.5", "one", "+1", "0x1", "1 ",
                                              "99999999999999999999"}},
    [OPTION_REQUIRE_APP] = {.good = {"true", "false"}, .wrong = {"yes", "1", "TRUE"}},
    [OPTION_APP_TIMEOUT] = {.good = {"off", "100ms", "1h"}, .wrong = {"none", "5", "99ms", "2h"}},
    [OPTION_APP_CHECK] = {.good = {"off", "http://localhost:8080/healthz", "http://[::1]:1",
                                   "http://127.0.0.2/a?b=c"},
                          .wrong = {"https://localhost/", "localhost:80", "http://example.org/",
                                    "http://10.0.0.1/", "http://localhost:0/",
                                    "http://localhost:65536/", "http://u@localhost/",
                                    "http://localhost/a b", "http://localhost/#x",
                                    "http://localhost:80?x", "http://[::1", "http://"}},
    [OPTION_HTTP] = {.good = {"localhost:0", "127.0.0.1:80", "[::1]:80", ":80", "off"},
                     .wrong = {"4040", "localhost", "example.org:80", ":65536", "::1:80", "[::1",
                               "1.2.3:80", "OFF"}},
    [OPTION_HEALTH] = {.good = {":0", "0.0.0.0:80", "off"}, .wrong = {"4041", ":x", "a b:80"}},
    [OPTION_SOCKET] = {.good = {"/run/x.sock", "off", "/" LONG_NAME "/1234"}, /* 107 */
                       .wrong = {"x.sock", "./x", "/run/", "/", "/" LONG_NAME "/12345"}},
    [OPTION_SOCKET_MODE] = {.good = {"0660", "0600", "0777", "660"},
                            .wrong = {"0o660", "rw", "0400", "0577", "01777", "888", "66",
                                      "00000660"}},
    [OPTION_PAGE_DIR] = {.good = {"/run/gavel", "/", "off"}, .wrong = {"pages", "./x", "OFF"}},
    [OPTION_PG_LOCK] = {.good = {"session", "transaction"}, .wrong = {"row", "Session"}},
    [OPTION_PG_POOLER] = {.good = {"none", "session"}, .wrong = {"transaction", "off"}},
    [OPTION_PG_KEY] = {.good = {"hash", "0", "-9223372036854775808", "7,42",
                                "-2147483648,2147483647"},
                       .wrong = {"9223372036854775808", "7,", ",7", "7, 42", "2147483648,1", "x",
                                 "1,2,3", "+1", "0x7", " 1", "7;1"}},
    [OPTION_PG_SCHEMA] = {.good = {"public", "My Schema"}, .wrong = {LONG_NAME, "a\n"}},
    [OPTION_PG_TOKEN] = {.good = {"row", "sequence:public.s", "sequence:\"a.\"\"b\".\"C\"",
                                  "sequence:p_1.s$2"},
                         .wrong = {"sequence:s", "s", "sequence:a.b.c", "sequence:\"a.b\"",
                                   "sequence:public.", "sequence:.s",
                                   "sequence:p.1s", "sequence:p.\"s", "sequence:p.s;"}},
    [OPTION_PG_SYNCHRONOUS] = {.good = {"true", "false"}, .wrong = {"on", "yes"}},
    [OPTION_LOG_FORMAT] = {.good = {"json", "text"}, .wrong = {"xml", "JSON"}},
    [OPTION_LOG_LEVEL] = {.good = {"debug", "info", "warn", "error"}, .wrong = {"warning", "0"}},
};

/* One value by flag or by variable, beside what else is needed. */
static void load_value(struct loaded *loaded, size_t id, bool by_flag, const char *value) {
    char name[80];
    char variable[OPTION_VARIABLE_MAX];
    char *entry = malloc(strlen(value) + 80);
    char *text = strdup(value);
    char *arguments[8] = {NULL};
    char *environment[4] = {NULL};
    size_t count = 0;
    size_t variables = 0;
    assert_true(entry != NULL && text != NULL);
    (void)snprintf(name, sizeof name, "--%s", options[id].name);
    if (by_flag) {
        arguments[count++] = name;
        arguments[count++] = text;
    } else {
        (void)sprintf(entry, "%s=%s", option_variable(options[id].name, variable), value);
        environment[variables++] = entry;
    }
    bool postgres = id >= OPTION_PG_LOCK && id <= OPTION_PG_SYNCHRONOUS;
    char redis_store[] = "--store=rediss://h";
    char postgres_store[] = "--store=postgres://h/db";
    char *store = postgres ? postgres_store : redis_store;
    char election[] = "--election=a";
    char password[] = "GAVEL_STORE_PASSWORD=x";
    char certificate[] = "GAVEL_TLS_CERT=/cert.pem";
    char key[] = "GAVEL_TLS_KEY=/key.pem";
    if (id != OPTION_STORE) {
        arguments[count++] = store;
    }
    if (id != OPTION_ELECTION) {
        arguments[count++] = election;
    }
    if (id == OPTION_STORE_USER) {
        environment[variables++] = password;
    } else if (id == OPTION_TLS_CERT) {
        environment[variables++] = key;
    } else if (id == OPTION_TLS_KEY) {
        environment[variables++] = certificate;
    }
    load(loaded, arguments, environment);
    free(entry);
    free(text);
}

static void every_option_has_samples(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        if (samples[id].good[0] == NULL || (samples[id].wrong[0] == NULL) != samples[id].any_text) {
            fail_msg("no samples for --%s", options[id].name);
        }
    }
}

static void the_table_is_complete(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        const struct option *option = &options[id];
        assert_true(option->name != NULL && option->value != NULL && option->help != NULL);
        assert_true(option->take != NULL && option->show != NULL);
        assert_true(strlen(option->name) < 40);
        assert_true(option->required ? option->standard == NULL : true);
        for (const char *at = option->name; *at != '\0'; at++) {
            assert_true(islower(*at) || *at == '-');
        }
        for (size_t other = 0; other < id; other++) {
            assert_string_not_equal(option->name, options[other].name);
        }
    }
}

static void good_values_are_taken(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        for (const char *const *good = samples[id].good; *good != NULL; good++) {
            for (int by_flag = options[id].secret ? 0 : 1; by_flag >= 0; by_flag--) {
                struct loaded loaded;
                load_value(&loaded, id, by_flag == 1, *good);
                assert_good(&loaded);
                assert_int_equal(strncmp(loaded.config.settings[id].key,
                                         by_flag == 1 ? "--" : "GAVEL_", by_flag == 1 ? 2 : 6),
                                 0);
                unload(&loaded);
            }
        }
    }
}

static void assert_refused(size_t id, bool by_flag, const char *value) {
    char key[80];
    char variable[OPTION_VARIABLE_MAX];
    struct loaded loaded;
    load_value(&loaded, id, by_flag, value);
    (void)snprintf(key, sizeof key, by_flag ? "--%s" : "%s",
                   by_flag ? options[id].name : option_variable(options[id].name, variable));
    bool shown = strpbrk(value, "\n") == NULL && strlen(value) < 150;
    char *words[] = {key, shown ? (char *)(uintptr_t)value : NULL, NULL};
    assert_one_error(&loaded, words);
    assert_int_equal(strncmp(loaded.report.errors.lines[0], key, strlen(key)), 0);
    assert_true(strlen(loaded.report.errors.lines[0]) < 1000);
    assert_false(loaded.report.usage);
    unload(&loaded);
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        for (const char *const *wrong = samples[id].wrong; *wrong != NULL; wrong++) {
            assert_refused(id, true, *wrong);
            assert_refused(id, false, *wrong);
        }
        if (!options[id].secret) {
            assert_refused(id, true, "");
        }
        assert_refused(id, false, "");
    }
}

static void overlong_values_are_refused_in_few_words(void **state) {
    (void)state;
    char value[20001];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        if (!samples[id].any_text) {
            assert_refused(id, true, value);
            assert_refused(id, false, value);
        }
    }
}

/* Tries `--NAME VALUE --NAME VALUE` and the like. */
static void twice(const char *first, const char *second, const char *value, struct loaded *loaded) {
    char a[80];
    char b[80];
    char text[64];
    (void)snprintf(a, sizeof a, "--%s", first);
    (void)snprintf(b, sizeof b, "--%s", second);
    (void)snprintf(text, sizeof text, "%s", value);
    load(loaded, WORDS(a, text, b, text), NO_WORDS);
}

static void a_flag_given_twice_is_an_error(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        const struct option *option = &options[id];
        if (option->repeatable || option->secret) {
            continue;
        }
        struct loaded loaded;
        twice(option->name, option->name, samples[id].good[0], &loaded);
        assert_true(has_line(&loaded.report.errors, "is given twice"));
        unload(&loaded);
        if (option->old_name != NULL) {
            twice(option->old_name, option->name, samples[id].good[0], &loaded);
            assert_true(has_line(&loaded.report.errors, "is given twice"));
            unload(&loaded);
        }
    }
}

static void a_switch_may_stand_alone(void **state) {
    (void)state;
    struct loaded loaded;
    load(&loaded, WORDS("--require-app", "--mode", "efficiency"), NO_WORDS);
    assert_true(loaded.config.require_app);
    assert_true(loaded.config.efficiency);
    unload(&loaded);
}

static void a_flag_without_a_value_is_an_error(void **state) {
    (void)state;
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        if (options[id].flag) {
            continue;
        }
        char name[80];
        char message[120];
        (void)snprintf(name, sizeof name, "--%s%s", options[id].name,
                       options[id].secret ? "-file" : "");
        (void)snprintf(message, sizeof message, "%s: the value is missing", name);
        struct loaded loaded;
        load(&loaded, WORDS(name), NO_WORDS);
        assert_true(has_line(&loaded.report.errors, message));
        assert_true(loaded.report.usage);
        unload(&loaded);
        load(&loaded, WORDS(name, "--mode", "efficiency"), NO_WORDS);
        assert_true(has_line(&loaded.report.errors, message) || id == OPTION_MODE);
        unload(&loaded);
    }
}

static void every_option_is_in_the_help_and_in_the_table(void **state) {
    (void)state;
    char *help = NULL;
    char *table = NULL;
    size_t size;
    FILE *out = open_memstream(&help, &size);
    config_print_help(out);
    assert_int_equal(fclose(out), 0);
    out = open_memstream(&table, &size);
    config_print_table(out);
    assert_int_equal(fclose(out), 0);
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        char text[100];
        char variable[OPTION_VARIABLE_MAX];
        (void)snprintf(text, sizeof text, "  --%s%s ", options[id].name,
                       options[id].secret ? "-file" : "");
        assert_non_null(strstr(help, text));
        (void)snprintf(text, sizeof text, "`--%s%s ", options[id].name,
                       options[id].secret ? "-file" : "");
        assert_non_null(strstr(table, text));
        (void)snprintf(text, sizeof text, "`%s`", option_variable(options[id].name, variable));
        assert_non_null(strstr(table, text));
    }
    size_t lines = 0;
    for (const char *at = table; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, OPTION_COUNT + 2);
    for (const char *line = help; *line != '\0'; line += strcspn(line, "\n") + 1) {
        assert_true(strcspn(line, "\n") <= 100);
    }
    free(help);
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_has_samples),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(good_values_are_taken),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(overlong_values_are_refused_in_few_words),
        cmocka_unit_test(a_flag_given_twice_is_an_error),
        cmocka_unit_test(a_switch_may_stand_alone),
        cmocka_unit_test(a_flag_without_a_value_is_an_error),
        cmocka_unit_test(every_option_is_in_the_help_and_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
