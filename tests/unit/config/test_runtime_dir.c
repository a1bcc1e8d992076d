#include "config/runtime_dir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A folder that stands for /run and one for $XDG_RUNTIME_DIR. */
struct fixture {
    char root[64], system[96], user[96], system_gavel[128], user_gavel[128];
    char path[256];
};

static int setup(void **state) {
    static struct fixture fixture;
    (void)strcpy(fixture.root, "/tmp/gavel-test-XXXXXX");
    if (mkdtemp(fixture.root) == NULL) {
        return 1;
    }
    (void)snprintf(fixture.system, sizeof fixture.system, "%s/run", fixture.root);
    (void)snprintf(fixture.user, sizeof fixture.user, "%s/user", fixture.root);
    (void)snprintf(fixture.system_gavel, sizeof fixture.system_gavel, "%s/gavel", fixture.system);
    (void)snprintf(fixture.user_gavel, sizeof fixture.user_gavel, "%s/gavel", fixture.user);
    *state = &fixture;
    return mkdir(fixture.system, 0755) != 0 || mkdir(fixture.user, 0755) != 0 ||
           chmod(fixture.root, 0755) != 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    (void)rmdir(fixture->system_gavel);
    (void)unlink(fixture->system_gavel);
    (void)rmdir(fixture->user_gavel);
    (void)rmdir(fixture->system);
    (void)rmdir(fixture->user);
    return rmdir(fixture->root);
}

static const char *ask(struct fixture *fixture, const char *given, const char *user,
                       enum runtime_asker asker) {
    struct runtime_places places = {given, fixture->system, user};
    return runtime_directory(&places, asker, fixture->path, sizeof fixture->path) ? fixture->path
                                                                                  : NULL;
}

static void systemd_says_where(void **state) {
    struct fixture *f = *state;
    assert_string_equal(ask(f, "/run/one:/run/two", f->user, RUNTIME_SIDECAR), "/run/one");
    assert_string_equal(ask(f, "/run/one", NULL, RUNTIME_CLIENT), "/run/one");
    /* What is no path says nothing. */
    assert_string_equal(ask(f, "", NULL, RUNTIME_SIDECAR), f->system_gavel);
    assert_string_equal(ask(f, "gavel", NULL, RUNTIME_SIDECAR), f->system_gavel);
}

static void the_system_comes_before_the_user(void **state) {
    struct fixture *f = *state;
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_SIDECAR), f->system_gavel);
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_CLIENT), f->system_gavel);
    assert_int_equal(mkdir(f->system_gavel, 0755), 0);
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_SIDECAR), f->system_gavel);
    assert_int_equal(access(f->user_gavel, F_OK), -1); /* nothing is made by asking */
}

static void the_user_has_one_where_the_system_has_none(void **state) {
    struct fixture *f = *state;
    assert_int_equal(rmdir(f->system), 0);
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_SIDECAR), f->user_gavel);
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_CLIENT), f->user_gavel);
    assert_null(ask(f, NULL, NULL, RUNTIME_SIDECAR));
    assert_null(ask(f, NULL, NULL, RUNTIME_CLIENT));
    assert_null(ask(f, NULL, "relative", RUNTIME_SIDECAR));
    assert_int_equal(mkdir(f->system, 0755), 0);
}

static void a_file_in_the_way_is_no_folder(void **state) {
    struct fixture *f = *state;
    FILE *file = fopen(f->system_gavel, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(ask(f, NULL, f->user, RUNTIME_SIDECAR), f->user_gavel);
    assert_null(ask(f, NULL, NULL, RUNTIME_CLIENT));
    assert_false(runtime_directory_make(f->system_gavel));
}

/* Runs a check as a user who may not write there; 0: all held. */
static int as_nobody(int (*check)(struct fixture *), struct fixture *fixture) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }
        _exit(check(fixture));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int differs(const char *text, const char *expected) {
    return text == NULL || strcmp(text, expected) != 0;
}

static int check_other_user(struct fixture *f) {
    int wrong = differs(ask(f, NULL, f->user, RUNTIME_SIDECAR), f->user_gavel);
    wrong |= ask(f, NULL, NULL, RUNTIME_SIDECAR) != NULL ? 2 : 0;
    wrong |= differs(ask(f, NULL, NULL, RUNTIME_CLIENT), f->system_gavel) ? 4 : 0;
    wrong |= differs(ask(f, NULL, f->user, RUNTIME_CLIENT), f->system_gavel) ? 8 : 0;
    return wrong;
}

static int check_own_sidecar(struct fixture *f) {
    return differs(ask(f, NULL, f->user, RUNTIME_CLIENT), f->user_gavel);
}

static int check_reachable(struct fixture *f) {
    return access(f->system_gavel, X_OK);
}

static void another_user_finds_the_systems(void **state) {
    struct fixture *f = *state;
    if (geteuid() != 0) {
        skip(); /* only root can become another */
    }
    assert_int_equal(mkdir(f->system_gavel, 0755), 0);
    if (as_nobody(check_reachable, f) != 0) {
        skip(); /* a machine whose root folder is closed to others */
    }
    assert_int_equal(as_nobody(check_other_user, f), 0);
    /* Once that user runs a sidecar of their own, it is theirs that is asked. */
    assert_int_equal(mkdir(f->user_gavel, 0755), 0);
    assert_int_equal(as_nobody(check_own_sidecar, f), 0);
}

static void is_made_once(void **state) {
    struct fixture *f = *state;
    struct stat status;
    assert_true(runtime_directory_make(f->user_gavel));
    assert_true(runtime_directory_make(f->user_gavel));
    assert_int_equal(stat(f->user_gavel, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    char deep[200];
    (void)snprintf(deep, sizeof deep, "%s/none/gavel", f->root);
    assert_false(runtime_directory_make(deep));
    assert_int_equal(errno, ENOENT);
}

static void the_socket_must_fit(void **state) {
    struct fixture *f = *state;
    char path[108];
    struct runtime_places places = {"/run/one", f->system, NULL};
    assert_true(runtime_socket(&places, RUNTIME_CLIENT, path, sizeof path));
    assert_string_equal(path, "/run/one/gavel.sock");
    char longest[120];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[96] = '\0';
    places.runtime_directory = longest;
    assert_true(runtime_socket(&places, RUNTIME_CLIENT, path, sizeof path));
    assert_int_equal(strlen(path), 107);
    longest[96] = 'x';
    longest[97] = '\0';
    assert_false(runtime_socket(&places, RUNTIME_CLIENT, path, sizeof path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(systemd_says_where, setup, teardown),
        cmocka_unit_test_setup_teardown(the_system_comes_before_the_user, setup, teardown),
        cmocka_unit_test_setup_teardown(the_user_has_one_where_the_system_has_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_file_in_the_way_is_no_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(another_user_finds_the_systems, setup, teardown),
        cmocka_unit_test_setup_teardown(is_made_once, setup, teardown),
        cmocka_unit_test_setup_teardown(the_socket_must_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
