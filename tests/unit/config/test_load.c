#include "config_kit.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void defaults(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, NO_WORDS, NO_WORDS);
    assert_good(&l);
    const struct config *config = &l.config;
    assert_string_equal(config->store_url, "redis://h");
    assert_string_equal(config->namespace_, "default");
    assert_int_equal(config->election_count, 1);
    assert_string_equal(config->elections[0], "a");
    assert_int_equal(config->ttl_ns, 10 * S);
    assert_int_equal(config->margin_ns, 2 * S);
    assert_int_equal(config->wait_ns, 10 * S);
    assert_int_equal(config->valid_for_ns, 2 * S);
    assert_int_equal(config->drain_ns, 10 * S);
    assert_false(config->drain_none || config->efficiency || config->step_down);
    assert_int_equal(config->token_floor, 0);
    assert_int_equal(config->redis_wait_replicas, 0);
    assert_string_equal(config->http.host, "localhost");
    assert_int_equal(config->http.port, 4040);
    assert_string_equal(config->health.host, "");
    assert_int_equal(config->health.port, 4041);
    assert_false(config->socket_off);
    assert_string_equal(config->socket_path, "/run/test/gavel.sock");
    assert_int_equal(config->socket_mode, 0660);
    assert_false(config->page_dir_off);
    assert_string_equal(config->page_dir, "/run/test");
    assert_null(config->store_user);
    assert_null(config->store_password);
    assert_true(config->log_json);
    assert_int_equal(config->log_level, LOG_INFO);
    char name[256];
    assert_int_equal(gethostname(name, sizeof name), 0);
    assert_string_equal(config->identity, name);
    unload(&l);
}

static void values_end_in_their_places(void **state) {
    (void)state;
    struct loaded l;
    load(&l,
         WORDS("--store=redis://h/1", "--election=a", "--election", "b,c", "--id", "me",
               "--election-namespace=ns", "--ttl=20s", "--margin", "3s", "--wait=1m",
               "--mode=efficiency", "--on-renew-failure=step-down", "--valid-for=1.5s",
               "--drain=none", "--token-floor=77", "--redis-wait-replicas=2", "--http=127.0.0.1:0",
               "--health=off", "--socket=/tmp/s", "--socket-mode=0600", "--page-dir=/tmp/p",
               "--log-format=text", "--log-level=error"),
         NO_WORDS);
    assert_good(&l);
    const struct config *config = &l.config;
    assert_int_equal(config->election_count, 3);
    assert_string_equal(config->elections[2], "c");
    assert_string_equal(config->identity, "me");
    assert_string_equal(config->namespace_, "ns");
    assert_int_equal(config->ttl_ns, 20 * S);
    assert_int_equal(config->margin_ns, 3 * S);
    assert_int_equal(config->wait_ns, 60 * S);
    assert_true(config->efficiency && config->step_down && config->drain_none);
    assert_int_equal(config->valid_for_ns, 1500 * MS);
    assert_int_equal(config->token_floor, 77);
    assert_int_equal(config->redis_wait_replicas, 2);
    assert_string_equal(config->http.host, "127.0.0.1");
    assert_true(config->health.off);
    assert_string_equal(config->socket_path, "/tmp/s");
    assert_int_equal(config->socket_mode, 0600);
    assert_string_equal(config->page_dir, "/tmp/p");
    assert_false(config->log_json);
    assert_int_equal(config->log_level, LOG_ERROR);
    unload(&l);
}

static void the_environment_serves_too(void **state) {
    (void)state;
    struct loaded l;
    load(&l, NO_WORDS,
         WORDS("GAVEL_STORE=local:/x", "GAVEL_ELECTION=a,b", "GAVEL_ID=me", "GAVEL_TTL=5s",
               "GAVEL_ELECTION_NAMESPACE=ns", "OTHER=1"));
    assert_good(&l);
    assert_int_equal(l.config.election_count, 2);
    assert_string_equal(l.config.identity, "me");
    assert_string_equal(l.config.namespace_, "ns");
    assert_int_equal(l.config.ttl_ns, 5 * S);
    assert_string_equal(l.config.settings[OPTION_TTL].key, "GAVEL_TTL");
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
    load(&l, NO_WORDS,
         WORDS("GAVEL_STORE=local:/x", "GAVEL_ELECTION=a", "GAVEL_ID=me", "GAVEL_IDENTITY=you"));
    assert_one_error(&l, WORDS("GAVEL_IDENTITY \"you\"", "given twice", "GAVEL_ID \"me\""));
    unload(&l);
}

static void a_flag_wins_over_its_twin(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--ttl", "5s", "--election", "b"),
              WORDS("GAVEL_TTL=nonsense", "GAVEL_ELECTION=c,,",
                    "GAVEL_STORE=", "GAVEL_STORE_FILE=/none"));
    assert_good(&l);
    assert_int_equal(l.config.ttl_ns, 5 * S);
    assert_string_equal(l.config.settings[OPTION_TTL].key, "--ttl");
    assert_int_equal(l.config.election_count, 2);
    unload(&l);
}

static void all_errors_come_at_once(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--ttl", "10", "--margin=1", "--mode", "x", "--http", "a", "--identity", "$(A)"),
         WORDS("GAVEL_DRAIN=", "GAVEL_LOG_LEVEL=loud"));
    assert_int_equal(l.result, CONFIG_BAD);
    assert_false(l.report.usage);
    static const char *const parts[] = {"--ttl \"10\": ",
                                        "--margin \"1\": ",
                                        "--mode \"x\": ",
                                        "--http \"a\": ",
                                        "--identity \"$(A)\": ",
                                        "GAVEL_DRAIN \"\": ",
                                        "GAVEL_LOG_LEVEL \"loud\": ",
                                        "--store: is required",
                                        "--election: is required"};
    assert_int_equal(l.report.errors.count, sizeof parts / sizeof parts[0]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_true(has_line(&l.report.errors, parts[i]));
    }
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(config_report_print(&l.report, "gavel run", out), 78);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "gavel run: --ttl \"10\": has no unit"));
    free(text);
    unload(&l);
}

static void wrong_command_lines(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--tll", "5s", "--frobnicate=secret", "stray", "-x", "--", "--mode"),
              NO_WORDS);
    assert_int_equal(l.result, CONFIG_BAD);
    assert_true(l.report.usage);
    assert_int_equal(l.report.errors.count, 6);
    assert_true(has_line(&l.report.errors, "unknown option \"--tll\"; did you mean --ttl?"));
    assert_true(has_line(&l.report.errors, "unknown option \"--frobnicate\";"));
    assert_false(has_line(&l.report.errors, "secret"));
    assert_true(has_line(&l.report.errors, "unexpected argument \"stray\""));
    assert_true(has_line(&l.report.errors, "unknown option \"-x\""));
    assert_true(has_line(&l.report.errors, "unexpected argument \"--\""));
    assert_true(has_line(&l.report.errors, "--mode: the value is missing"));
    unload(&l);
    load_with(&l, WORDS("--ttl", "10", "--tll"), NO_WORDS);
    assert_int_equal(l.report.errors.count, 2); /* of both kinds */
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    assert_int_equal(config_report_print(&l.report, "gavel run", out), 64);
    assert_int_equal(fclose(out), 0);
    unload(&l);
}

/* What follows from a mistake is not told beside it. */
static void one_mistake_is_told_once(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--election=a", "--store"), NO_WORDS);
    assert_one_error(&l, WORDS("--store: the value is missing"));
    unload(&l);
    load_with(&l, WORDS("--ttl=10s", "--ttl=20s", "--wait=9s"), NO_WORDS);
    assert_one_error(&l, WORDS("--ttl \"20s\": is given twice, before as --ttl \"10s\""));
    unload(&l);
}

static void help_goes_before_errors(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--nonsense", "--help"), NO_WORDS);
    assert_int_equal(l.result, CONFIG_HELP);
    unload(&l);
    load(&l, WORDS("-h"), NO_WORDS);
    assert_int_equal(l.result, CONFIG_HELP);
    unload(&l);
}

static void elections(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--election", "a"), NO_WORDS);
    assert_one_error(&l, WORDS("--election \"a\"", "a second time"));
    unload(&l);
    static char many[ELECTIONS_MAX * 6 + 16];
    size_t used = 0;
    for (int i = 0; i < ELECTIONS_MAX; i++) {
        used += (size_t)sprintf(many + used, "%se%d", i > 0 ? "," : "", i);
    }
    load(&l, WORDS("--store", "redis://h", "--election", many), NO_WORDS);
    assert_good(&l);
    assert_int_equal(l.config.election_count, ELECTIONS_MAX);
    unload(&l);
    (void)sprintf(many + used, ",one");
    load(&l, WORDS("--store", "redis://h", "--election", many), NO_WORDS);
    assert_one_error(&l, WORDS("--election", "at most 1000"));
    unload(&l);
}

static void unknown_variables_are_warnings(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, NO_WORDS,
              WORDS("GAVEL_PORT=tcp://10.0.0.1:80", "GAVEL_PORT_80_TCP_ADDR=10.0.0.1",
                    "GAVEL_TLL=hidden-value", "GAVEL_=x", "GAVEL_ttl=5s", "GAVEL_TTL_FILE=/x",
                    "GAVELTTL=1", "GAVEL_STORE_PASWORD=hidden-value"));
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 7);
    assert_true(has_line(&l.report.warnings, "\"GAVEL_PORT\""));
    assert_true(has_line(&l.report.warnings, "\"GAVEL_TLL\": there is no such setting, it is "
                                             "ignored; did you mean GAVEL_TTL?"));
    assert_true(has_line(&l.report.warnings, "did you mean GAVEL_STORE_PASSWORD?"));
    assert_false(has_line(&l.report.warnings, "hidden-value"));
    unload(&l);
}

static void warnings_are_bounded(void **state) {
    (void)state;
    static char entries[200][24];
    static char *environment[204] = {NULL};
    for (int i = 0; i < 200; i++) {
        (void)sprintf(entries[i], "GAVEL_X%d=1", i);
        environment[i] = entries[i];
    }
    static char store[] = "GAVEL_STORE=redis://h";
    static char election[] = "GAVEL_ELECTION=a";
    static char runtime[] = "RUNTIME_DIRECTORY=/run/test";
    environment[200] = store;
    environment[201] = election;
    environment[202] = runtime;
    struct loaded l;
    l.result = config_load(&l.config, 0, NO_WORDS, environment, &l.report);
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 50);
    unload(&l);
}

static void every_value_is_shown_with_its_origin(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store", "redis://u:hunter2@h", "--ttl", "5s"),
         WORDS("GAVEL_ELECTION=a,b", "GAVEL_DRAIN=none"));
    assert_good(&l);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print(&l.config, out);
    assert_int_equal(fclose(out), 0);
    static const char *const lines[] = {
        "store             redis://u:***@h  (--store)\n",
        "store-user        -  (default)\n",
        "store-password    -  (default)\n",
        "election          a,b  (GAVEL_ELECTION)\n",
        "namespace         default  (default)\n",
        "ttl               5s  (--ttl)\n",
        "margin            1s  (default)\n",
        "wait              5s  (default)\n",
        "mode              correctness  (default)\n",
        "drain             none  (GAVEL_DRAIN)\n",
        "http              localhost:4040  (default)\n",
        "health            :4041  (default)\n",
        "socket            /run/test/gavel.sock  (default)\n",
        "socket-mode       0660  (default)\n",
        "page-dir          /run/test  (default)\n",
        "log-level         info  (default)\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(text, lines[i]) == NULL) {
            fail_msg("not shown: %s", lines[i]);
        }
    }
    assert_null(strstr(text, "hunter2"));
    free(text);
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values_end_in_their_places),
        cmocka_unit_test(the_environment_serves_too),
        cmocka_unit_test(a_flag_wins_over_its_twin),
        cmocka_unit_test(all_errors_come_at_once),
        cmocka_unit_test(wrong_command_lines),
        cmocka_unit_test(one_mistake_is_told_once),
        cmocka_unit_test(help_goes_before_errors),
        cmocka_unit_test(elections),
        cmocka_unit_test(unknown_variables_are_warnings),
        cmocka_unit_test(warnings_are_bounded),
        cmocka_unit_test(every_value_is_shown_with_its_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
