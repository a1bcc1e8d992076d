#include "config_kit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Options that contradict each other. */

struct contradiction {
    char *arguments[8];
    char *words[6]; /* all in the one error; none: it is good */
};

static void contradictions(void **state) {
    (void)state;
    struct contradiction cases[] = {
        {{"--ttl=10s", "--margin=999ms"}, {"--margin \"999ms\"", "ttl/10", "1s"}},
        {{"--ttl=10s", "--margin=1s"}, {NULL}},
        {{"--ttl=10s", "--margin=999ms", "--mode=efficiency"}, {NULL}},
        {{"--ttl=10s", "--margin=3400ms"}, {"--margin \"3400ms\"", "ttl/3", "3.333333333s"}},
        {{"--ttl=10s", "--margin=3400ms", "--mode=efficiency"}, {"--margin"}},
        {{"--ttl=10s", "--margin=3333ms"}, {NULL}},
        {{"--ttl=300ms"}, {NULL}},
        {{"--ttl=300ms", "--margin=50ms"}, {NULL}},
        {{"--ttl=300ms", "--margin=101ms"}, {"--margin"}},
        {{"--ttl=10s", "--wait=9s"}, {"--wait \"9s\"", "at least 10s"}},
        {{"--ttl=10s", "--wait=10s"}, {NULL}},
        {{"--http=:80", "--health=:80"}, {"--health \":80\"", "--http", "different ports"}},
        {{"--http=:4041"}, {"--http \":4041\"", "--health"}},
        {{"--health=127.0.0.1:4040"}, {"--health", "--http"}},
        {{"--http=:0", "--health=:0"}, {NULL}},
        {{"--http=127.0.0.1:80", "--health=127.0.0.2:80"}, {NULL}},
        {{"--http=off", "--health=off", "--socket=off"}, {"--socket", "--http", "all off"}},
        {{"--http=off", "--socket=off"}, {NULL}},
        /* One mistake is told once: what depends on a refused value is left out. */
        {{"--ttl=1", "--margin=9s", "--wait=1s"}, {"--ttl"}},
        {{"--mode=x", "--margin=999ms"}, {"--mode"}},
        {{"--http=x", "--health=:4040"}, {"--http"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct loaded l;
        load_with(&l, cases[i].arguments, NO_WORDS);
        if (cases[i].words[0] == NULL) {
            assert_good(&l);
        } else {
            assert_one_error(&l, cases[i].words);
        }
        unload(&l);
    }
}

static void tls_options_need_a_url_with_tls(void **state) {
    (void)state;
    struct contradiction cases[] = {
        {{"--store=rediss://h"}, {NULL}},
        {{"--store=rediss://h", "--tls-ca=/ca"}, {NULL}},
        {{"--store=rediss://h", "--tls-cert=/c", "--tls-key=/k"}, {NULL}},
        {{"--store=rediss://h", "--tls-ca=/broken"}, {"--tls-ca \"/broken\"", "is broken"}},
        {{"--store=rediss://h", "--tls-cert=/broken", "--tls-key=/k"}, {"--tls-cert \"/broken\""}},
        {{"--store=rediss://h", "--tls-cert=/c", "--tls-key=/broken"}, {"--tls-key \"/broken\""}},
        {{"--store=rediss://h", "--tls-cert=/c"}, {"--tls-cert \"/c\"", "--tls-key"}},
        {{"--store=rediss://h", "--tls-key=/k"}, {"--tls-key \"/k\"", "--tls-cert"}},
        {{"--store=redis://h", "--tls-ca=/ca"}, {"--tls-ca \"/ca\"", "rediss://"}},
        {{"--store=local:/d", "--tls-ca=/ca"}, {"--tls-ca \"/ca\"", "rediss://"}},
        {{"--store=redis://h", "--tls-key=/k"}, {"--tls-key \"/k\"", "--tls-cert"}},
        /* Without a good URL nothing is known about TLS. */
        {{"--store=nonsense", "--tls-ca=/broken"}, {"--store"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct loaded l;
        char *arguments[] = {"--election=a", cases[i].arguments[0], cases[i].arguments[1],
                             cases[i].arguments[2], NULL};
        load(&l, arguments, NO_WORDS);
        if (cases[i].words[0] == NULL) {
            assert_good(&l);
        } else {
            assert_one_error(&l, cases[i].words);
        }
        unload(&l);
    }
    struct loaded l;
    load(&l, WORDS("--store=redis://h", "--election=a", "--tls-cert=/c", "--tls-key=/k"), NO_WORDS);
    assert_int_equal(l.report.errors.count, 2);
    unload(&l);
}

static void a_key_that_others_can_read_is_a_warning(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store=rediss://h", "--election=a"),
         WORDS("GAVEL_TLS_CERT=/c", "GAVEL_TLS_KEY=/exposed"));
    assert_good(&l);
    assert_string_equal(l.config.tls_key, "/exposed");
    assert_true(has_line(&l.report.warnings, "--tls-key \"/exposed\""));
    unload(&l);
}

static void only_redis_has_replicas(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, NO_WORDS, WORDS("GAVEL_REDIS_WAIT_REPLICAS=100"));
    assert_good(&l);
    assert_int_equal(l.config.redis_wait_replicas, 100);
    unload(&l);
    load(&l, WORDS("--store=local:/d", "--election=a", "--redis-wait-replicas=1"), NO_WORDS);
    assert_one_error(&l, WORDS("--redis-wait-replicas \"1\"", "leave it out"));
    unload(&l);
    load(&l, WORDS("--store=local:/d", "--election=a", "--redis-wait-replicas=0"), NO_WORDS);
    assert_good(&l);
    unload(&l);
}

static void the_margin_has_a_floor(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--ttl=300ms"), NO_WORDS);
    assert_good(&l);
    assert_int_equal(l.config.margin_ns, 60 * MS);
    unload(&l);
}

static void errors_name_the_variable(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--ttl=20s"), WORDS("GAVEL_MARGIN=1s"));
    assert_one_error(&l, WORDS("GAVEL_MARGIN \"1s\": ", "ttl/10", "2s"));
    unload(&l);
}

static void a_short_drain_is_a_warning(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--drain=1s", "--valid-for=2s"), NO_WORDS);
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 1);
    assert_true(has_line(&l.report.warnings, "--drain is shorter"));
    unload(&l);
    load_with(&l, WORDS("--drain=2s", "--valid-for=2s", "--page-dir=off"), NO_WORDS);
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
    /* What is read from a page as the drain begins is waited for as well. */
    load_with(&l, WORDS("--drain=2s", "--valid-for=2s"), NO_WORDS);
    assert_true(has_line(&l.report.warnings, "--drain is shorter"));
    unload(&l);
    load_with(&l, WORDS("--drain=2050ms", "--valid-for=2s"), NO_WORDS);
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
    load_with(&l, WORDS("--drain=none"), NO_WORDS);
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
    load_with(&l, WORDS("--drain=1s", "--ttl=1s"),
              NO_WORDS); /* no answer promises more than 0.8 s */
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
}

/* There a lock ends with its connection. */
static void a_short_drain_frees_postgres_too_early(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store=postgres://h/d", "--election=a", "--drain=1s"), NO_WORDS);
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 1);
    assert_true(has_line(&l.report.warnings, "as soon as the process has ended"));
    assert_true(has_line(&l.report.warnings, "--wait"));
    assert_false(has_line(&l.report.warnings, "lease to run out"));
    unload(&l);
    load(&l, WORDS("--store=postgres://h/d", "--election=a", "--drain=1s", "--mode=efficiency"),
         NO_WORDS);
    assert_one_error(&l, WORDS("--drain \"1s\"", "PostgreSQL", "2.05s", "none"));
    unload(&l);
    load(&l, WORDS("--store=postgres://h/d", "--election=a", "--drain=3s", "--mode=efficiency"),
         NO_WORDS);
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
}

static void credentials(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store=local:/x", "--election=a"), WORDS("GAVEL_STORE_PASSWORD=hunter2"));
    assert_one_error(&l, WORDS("GAVEL_STORE_PASSWORD (hidden): ", "local store"));
    unload(&l);
    load(&l, WORDS("--store=redis://u:p@h", "--election=a"), WORDS("GAVEL_STORE_PASSWORD=hunter2"));
    assert_one_error(&l, WORDS("GAVEL_STORE_PASSWORD (hidden): ", "in one place"));
    unload(&l);
    load(&l, WORDS("--store=redis://u@h", "--election=a", "--store-user=v"),
         WORDS("GAVEL_STORE_PASSWORD=hunter2"));
    assert_one_error(&l, WORDS("--store-user \"v\": ", "in one place"));
    unload(&l);
    load(&l, WORDS("--store=redis://u@h", "--election=a"), WORDS("GAVEL_STORE_PASSWORD=hunter2"));
    assert_good(&l);
    assert_string_equal(l.config.store_password, "hunter2");
    unload(&l);
    load(&l, WORDS("--store=redis://h", "--election=a", "--store-user=v"), NO_WORDS);
    assert_one_error(&l, WORDS("--store-user \"v\": ", "GAVEL_STORE_PASSWORD"));
    unload(&l);
}

static void a_password_in_argv_is_a_warning(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store=redis://u:hunter2@h", "--election=a"), NO_WORDS);
    assert_good(&l);
    assert_true(has_line(&l.report.warnings, "on the command line"));
    assert_false(has_line(&l.report.warnings, "hunter2"));
    unload(&l);
    load(&l, WORDS("--election=a"), WORDS("GAVEL_STORE=redis://u:hunter2@h"));
    assert_good(&l);
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
}

static void errors_hide_passwords(void **state) {
    (void)state;
    struct loaded l;
    load(&l, WORDS("--store=redis://u:hunter2@wrong", "--election=a"), NO_WORDS);
    assert_one_error(&l, WORDS("--store \"redis://u:***@wrong\": is wrong"));
    unload(&l);
    load(&l, WORDS("--store=redis://u:hunter2@h", "--store", "redis://:hunter2@h", "--election=a"),
         NO_WORDS);
    assert_one_error(&l, WORDS("--store \"redis://:***@h\": is given twice", "u:***@h"));
    assert_false(has_line(&l.report.errors, "hunter2"));
    unload(&l);
    load_with(&l, WORDS("redis://u:hunter2@h"), NO_WORDS);
    assert_false(has_line(&l.report.errors, "hunter2"));
    unload(&l);
}

/* Without any folder that serves the option is named. */
static void no_runtime_directory(void **state) {
    (void)state;
    if (access("/run/gavel", W_OK) == 0 || access("/run", W_OK) == 0) {
        skip(); /* root finds one; the rule itself has its own tests */
    }
    struct loaded l;
    l.result =
        config_load(&l.config, 3, WORDS("--store=redis://h", "--election=a", "--page-dir=off"),
                    NO_WORDS, &l.report);
    assert_one_error(&l, WORDS("--socket: ", "--socket PATH"));
    unload(&l);
    l.result = config_load(&l.config, 3, WORDS("--store=redis://h", "--election=a", "--socket=off"),
                           NO_WORDS, &l.report);
    assert_one_error(&l, WORDS("--page-dir: ", "--page-dir off"));
    unload(&l);
}

static void a_runtime_directory_that_is_too_long(void **state) {
    (void)state;
    char variable[200] = "RUNTIME_DIRECTORY=/";
    memset(variable + strlen(variable), 'x', 120);
    struct loaded l;
    l.result = config_load(&l.config, 2, WORDS("--store=redis://h", "--election=a"),
                           WORDS(variable), &l.report);
    assert_one_error(&l, WORDS("--socket: ", "--socket PATH"));
    unload(&l);
}

static void the_default_folder_is_made(void **state) {
    (void)state;
    char root[] = "/tmp/gavel-test-XXXXXX";
    assert_non_null(mkdtemp(root));
    char folder[64];
    char variable[96];
    (void)snprintf(folder, sizeof folder, "%s/run", root);
    (void)snprintf(variable, sizeof variable, "RUNTIME_DIRECTORY=%s", folder);
    struct loaded l;
    struct error error;
    l.result = config_load(&l.config, 2, WORDS("--store=redis://h", "--election=a"),
                           WORDS(variable), &l.report);
    assert_good(&l);
    assert_int_equal(access(folder, F_OK), -1); /* reading changes nothing */
    assert_true(config_make_runtime_folder(&l.config, &error));
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(root), 0);
    assert_false(config_make_runtime_folder(&l.config, &error));
    assert_non_null(strstr(error.text, folder));
    unload(&l);
    /* A folder that was asked for has to be there. */
    load_with(&l, WORDS("--socket=/tmp/gavel-test-none/x", "--page-dir=/tmp/gavel-test-none"),
              NO_WORDS);
    assert_true(config_make_runtime_folder(&l.config, &error));
    assert_int_equal(access("/tmp/gavel-test-none", F_OK), -1);
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions),
        cmocka_unit_test(tls_options_need_a_url_with_tls),
        cmocka_unit_test(a_key_that_others_can_read_is_a_warning),
        cmocka_unit_test(only_redis_has_replicas),
        cmocka_unit_test(the_margin_has_a_floor),
        cmocka_unit_test(errors_name_the_variable),
        cmocka_unit_test(a_short_drain_is_a_warning),
        cmocka_unit_test(a_short_drain_frees_postgres_too_early),
        cmocka_unit_test(credentials),
        cmocka_unit_test(a_password_in_argv_is_a_warning),
        cmocka_unit_test(errors_hide_passwords),
        cmocka_unit_test(no_runtime_directory),
        cmocka_unit_test(a_runtime_directory_that_is_too_long),
        cmocka_unit_test(the_default_folder_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
