#include "config_kit.h"

#include "base/memory.h"
#include "config/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder with one secret's file in it. */
struct fixture {
    char folder[64], path[96], flag[160];
};

static int setup(void **state) {
    static struct fixture fixture;
    (void)strcpy(fixture.folder, "/tmp/gavel-test-XXXXXX");
    *state = &fixture;
    if (mkdtemp(fixture.folder) == NULL) {
        return 1;
    }
    (void)snprintf(fixture.path, sizeof fixture.path, "%s/secret", fixture.folder);
    (void)snprintf(fixture.flag, sizeof fixture.flag, "--store-password-file=%s", fixture.path);
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    (void)unlink(fixture->path);
    return rmdir(fixture->folder);
}

static void write_secret(struct fixture *fixture, const char *bytes, size_t count) {
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void one_line_end_is_dropped(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *content, *secret;
    } cases[] = {{"hunter2", "hunter2"},
                 {"hunter2\n", "hunter2"},
                 {"a\n\n", "a\n"},
                 {" a \n", " a "},
                 {"a\nb\n", "a\nb"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error;
        write_secret(f, cases[i].content, strlen(cases[i].content));
        char *secret = secret_read(f->path, &error);
        assert_string_equal(secret, cases[i].secret);
        memory_free_secret(secret);
    }
}

static void assert_unreadable(struct fixture *f, const char *why) {
    struct error error;
    assert_null(secret_read(f->path, &error));
    assert_non_null(strstr(error.text, why));
    assert_null(strstr(error.text, "hunter2"));
}

static void bad_files_are_refused(void **state) {
    struct fixture *f = *state;
    assert_unreadable(f, "No such file");
    write_secret(f, "", 0);
    assert_unreadable(f, "is empty");
    write_secret(f, "\n", 1);
    assert_unreadable(f, "is empty");
    write_secret(f, "hunter2\0x", 9);
    assert_unreadable(f, "NUL");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_unreadable(f, "not a regular file"); /* and does not hang */
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_unreadable(f, "not a regular file");
    assert_int_equal(rmdir(f->path), 0);
}

static void the_size_is_bounded(void **state) {
    struct fixture *f = *state;
    static char bytes[1 << 20];
    struct error error;
    memset(bytes, 'x', sizeof bytes);
    write_secret(f, bytes, SECRET_MOST);
    char *secret = secret_read(f->path, &error);
    assert_int_equal(strlen(secret), SECRET_MOST);
    memory_free_secret(secret);
    bytes[SECRET_MOST] = '\n';
    write_secret(f, bytes, SECRET_MOST + 1);
    secret = secret_read(f->path, &error);
    assert_int_equal(strlen(secret), SECRET_MOST);
    memory_free_secret(secret);
    bytes[SECRET_MOST] = 'x';
    write_secret(f, bytes, SECRET_MOST + 1);
    assert_unreadable(f, "too long");
    write_secret(f, bytes, sizeof bytes);
    assert_unreadable(f, "too long");
}

static void a_password_comes_from_its_file(void **state) {
    struct fixture *f = *state;
    struct loaded l;
    char variable[160];
    write_secret(f, "hunter2\n", 8);
    load_with(&l, WORDS(f->flag), NO_WORDS);
    assert_good(&l);
    assert_string_equal(l.config.store_password, "hunter2");
    assert_string_equal(l.config.store_password_file, f->path);
    assert_string_equal(l.config.settings[OPTION_STORE_PASSWORD].key, "--store-password-file");
    unload(&l);
    (void)snprintf(variable, sizeof variable, "GAVEL_STORE_PASSWORD_FILE=%s", f->path);
    load_with(&l, NO_WORDS, WORDS(variable));
    assert_good(&l);
    assert_string_equal(l.config.store_password, "hunter2");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print(&l.config, out);
    assert_int_equal(fclose(out), 0);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, f->path));
    assert_non_null(strstr(text, "(hidden)  (GAVEL_STORE_PASSWORD_FILE "));
    free(text);
    unload(&l);
}

static void users_and_urls_have_files_too(void **state) {
    struct fixture *f = *state;
    struct loaded l;
    char option[160];
    write_secret(f, "redis://u:hunter2@h\n", 20);
    (void)snprintf(option, sizeof option, "--store-file=%s", f->path);
    load(&l, WORDS(option, "--election=a"), NO_WORDS);
    assert_good(&l);
    assert_string_equal(l.config.store_url, "redis://u:hunter2@h");
    assert_int_equal(l.report.warnings.count, 0);
    unload(&l);
    write_secret(f, "redis://u:hunter2@wrong", 23);
    load(&l, WORDS(option, "--election=a"), NO_WORDS);
    assert_one_error(&l, WORDS("--store-file ", f->path, "is wrong"));
    assert_false(has_line(&l.report.errors, "hunter2"));
    unload(&l);
    write_secret(f, "worker\n", 7);
    (void)snprintf(option, sizeof option, "GAVEL_STORE_USER_FILE=%s", f->path);
    load_with(&l, NO_WORDS, WORDS(option, "GAVEL_STORE_PASSWORD=x"));
    assert_good(&l);
    assert_string_equal(l.config.store_user, "worker");
    unload(&l);
}

static void a_value_and_a_file_are_an_error(void **state) {
    struct fixture *f = *state;
    struct loaded l;
    char variable[160];
    write_secret(f, "hunter2\n", 8);
    (void)snprintf(variable, sizeof variable, "GAVEL_STORE_PASSWORD_FILE=%s", f->path);
    load_with(&l, NO_WORDS, WORDS("GAVEL_STORE_PASSWORD=hunter3", variable));
    assert_one_error(&l, WORDS("GAVEL_STORE_PASSWORD_FILE", "GAVEL_STORE_PASSWORD is given too"));
    assert_false(has_line(&l.report.errors, "hunter"));
    unload(&l);
    load_with(&l, NO_WORDS, WORDS(variable, "GAVEL_STORE_PASSWORD=hunter3"));
    assert_one_error(&l, WORDS("GAVEL_STORE_PASSWORD (hidden)", "_FILE is given too"));
    unload(&l);
    /* The command line overrides the environment, whichever way. */
    load_with(&l, WORDS(f->flag), WORDS("GAVEL_STORE_PASSWORD=hunter3"));
    assert_good(&l);
    assert_string_equal(l.config.store_password, "hunter2");
    unload(&l);
    load_with(&l, WORDS(f->flag, f->flag), NO_WORDS);
    assert_one_error(&l, WORDS("--store-password-file", "given twice"));
    unload(&l);
}

static void an_unreadable_file_is_an_error(void **state) {
    struct fixture *f = *state;
    struct loaded l;
    load_with(&l, WORDS(f->flag), NO_WORDS);
    assert_one_error(&l, WORDS("--store-password-file", f->path, "No such file"));
    unload(&l);
    load_with(&l, WORDS("--store-password-file="), NO_WORDS);
    assert_one_error(&l, WORDS("--store-password-file", "is empty"));
    unload(&l);
}

static void no_secret_on_the_command_line(void **state) {
    (void)state;
    struct loaded l;
    load_with(&l, WORDS("--store-password", "hunter2"), NO_WORDS);
    assert_one_error(&l, WORDS("--store-password-file PATH", "GAVEL_STORE_PASSWORD_FILE"));
    assert_false(has_line(&l.report.errors, "hunter2"));
    assert_true(l.report.usage);
    unload(&l);
    load_with(&l, WORDS("--store-password=hunter2"), NO_WORDS);
    assert_one_error(&l, WORDS("--store-password: "));
    assert_false(has_line(&l.report.errors, "hunter2"));
    unload(&l);
}

static void secrets_are_read_again(void **state) {
    struct fixture *f = *state;
    struct loaded l;
    struct error error;
    bool changed = true;
    write_secret(f, "first\n", 6);
    load_with(&l, WORDS(f->flag), NO_WORDS);
    assert_good(&l);
    assert_true(config_reload_secrets(&l.config, &changed, &error));
    assert_false(changed);
    write_secret(f, "second\n", 7);
    assert_true(config_reload_secrets(&l.config, &changed, &error));
    assert_true(changed);
    assert_string_equal(l.config.store_password, "second");
    write_secret(f, "", 0);
    assert_false(config_reload_secrets(&l.config, &changed, &error));
    assert_string_equal(l.config.store_password, "second");
    assert_non_null(strstr(error.text, "--store-password-file"));
    assert_non_null(strstr(error.text, f->path));
    assert_int_equal(unlink(f->path), 0);
    assert_false(config_reload_secrets(&l.config, &changed, &error));
    assert_string_equal(l.config.store_password, "second");
    unload(&l);
    load_with(&l, NO_WORDS, WORDS("GAVEL_STORE_PASSWORD=x"));
    assert_true(config_reload_secrets(&l.config, &changed, &error)); /* nothing to read */
    assert_string_equal(l.config.store_password, "x");
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_line_end_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_size_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_password_comes_from_its_file, setup, teardown),
        cmocka_unit_test_setup_teardown(users_and_urls_have_files_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_and_a_file_are_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unreadable_file_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(no_secret_on_the_command_line, setup, teardown),
        cmocka_unit_test_setup_teardown(secrets_are_read_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
