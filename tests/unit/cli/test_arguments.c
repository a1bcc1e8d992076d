#include "cli_kit.h"

#include "cli/client.h"

#include <stdio.h>
#include <unistd.h>

/* The command line of gavelctl, and how it finds the socket. */

static void wrong_command_lines(void **state) {
    struct fake_sidecar *fake = *state;
    char *cases[][8] = {
        {"frobnicate"},
        {"run"},
        {"--check"},
        {"check", "--frobnicate"},
        {"check", "--json"},
        {"check", "--for", "ready"},
        {"check", "-x"},
        {"check", "a", "b"},
        {"check", "-"},
        {"check", "a b"},
        {"check", "a\nresign"},
        {"check", ""},
        {"check", "--timeout", "10"},
        {"check", "--timeout", "0s"},
        {"check", "--timeout", "25h"},
        {"check", "--timeout"},
        {"check", "--timeout", "--for"},
        {"check", "--timeout=1s", "--timeout=1s"},
        {"check", "--timeout="},
        {"wait", "--for", "follower"},
        {"wait", "--for"},
        {"status", "--json=1"},
        {"resign", "--nonsense=5"},
        {"help", "frobnicate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(fake_run_with(fake, cases[i], (char *[]){"GAVEL_SOCKET=/none", NULL}), 64);
        assert_string_equal(fake->out, "");
        assert_int_equal(strncmp(fake->err, "gavelctl", 8), 0);
    }
    assert_int_equal(fake_run_with(fake, (char *[]){NULL}, (char *[]){NULL}), 64);
    assert_non_null(strstr(fake->err, "usage: gavelctl"));
}

static void all_that_is_wrong_is_told(void **state) {
    struct fake_sidecar *fake = *state;
    char *arguments[] = {"wait", "--tiemout=5", "--timeout=5", "--for=x", "-a", "a/b", NULL};
    assert_int_equal(fake_run_with(fake, arguments, (char *[]){"GAVEL_SOCKET=x", NULL}), 64);
    static const char *const parts[] = {
        "unknown option \"--tiemout=5\"",           "--timeout \"5\": has no unit",
        "--for \"x\": is neither leader nor ready", "unknown option \"-a\"",
        "\"a/b\": is not an election's name",       "GAVEL_SOCKET \"x\": is not an absolute path"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_non_null(strstr(fake->err, parts[i]));
    }
}

static void wrong_sockets(void **state) {
    struct fake_sidecar *fake = *state;
    static char overlong[200] = "GAVEL_SOCKET=/";
    memset(overlong + strlen(overlong), 'x', 107);
    char *const variables[] = {"GAVEL_SOCKET=off", "GAVEL_SOCKET=", "GAVEL_SOCKET=x.sock",
                               overlong};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        char *environment[] = {variables[i], NULL};
        assert_int_equal(fake_run_with(fake, (char *[]){"check", NULL}, environment), 64);
        assert_non_null(strstr(fake->err, "GAVEL_SOCKET"));
        char *option = variables[i] + sizeof "GAVEL_SOCKET=" - 1;
        assert_int_equal(
            fake_run_with(fake, (char *[]){"check", "--socket", option, NULL}, (char *[]){NULL}),
            64);
        assert_non_null(strstr(fake->err, "--socket"));
    }
    char *check_off[] = {"check", "--socket=off", NULL};
    assert_int_equal(fake_run_with(fake, check_off, (char *[]){NULL}), 64);
    assert_non_null(strstr(fake->err, "--socket is off"));
    overlong[strlen(overlong) - 1] = '\0'; /* 107 bytes */
    assert_int_equal(fake_run_with(fake, (char *[]){"check", NULL}, (char *[]){overlong, NULL}), 2);
}

static void the_socket_is_found(void **state) {
    struct fake_sidecar *fake = *state;
    char variable[128];
    char directory[128];
    (void)snprintf(variable, sizeof variable, "GAVEL_SOCKET=%s", fake->socket);
    (void)snprintf(directory, sizeof directory, "RUNTIME_DIRECTORY=%s:/other", fake->folder);
    FAKE(fake, ANSWER("check", "follower a\n"), ANSWER("check", "follower b\n"),
         ANSWER("check", "follower c\n"));
    assert_int_equal(fake_run_with(fake, (char *[]){"check", NULL}, (char *[]){variable, NULL}), 1);
    assert_int_equal(fake_run_with(fake, (char *[]){"check", NULL}, (char *[]){directory, NULL}),
                     1);
    /* The option wins over the variable, the variable over the rule. */
    char *both[] = {"GAVEL_SOCKET=/none", "RUNTIME_DIRECTORY=/none", NULL};
    char *option[] = {"check", "--socket", fake->socket, NULL};
    assert_int_equal(fake_run_with(fake, option, both), 1);
    assert_string_equal(fake->out, "follower c\n");
    fake_join(fake);
}

static void help(void **state) {
    struct fake_sidecar *fake = *state;
    char *commands[] = {"check", "wait", "status", "resign"};
    char *overall[][2] = {{"--help"}, {"-h"}, {"help"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fake_run_with(fake, overall[i], (char *[]){NULL}), 0);
        for (size_t j = 0; j < 4; j++) {
            assert_non_null(strstr(fake->out, commands[j]));
        }
    }
    for (size_t j = 0; j < 4; j++) {
        char *flag[] = {commands[j], "--nonsense", "--help", NULL};
        char *verb[] = {"help", commands[j], NULL};
        char usage[64];
        (void)snprintf(usage, sizeof usage, "usage: gavelctl %s ", commands[j]);
        assert_int_equal(fake_run_with(fake, verb, (char *[]){NULL}), 0);
        assert_int_equal(strncmp(fake->out, usage, strlen(usage)), 0);
        assert_non_null(strstr(fake->out, "Exit: "));
        assert_int_equal(fake_run_with(fake, flag, (char *[]){NULL}), 0);
        assert_int_equal(strncmp(fake->out, usage, strlen(usage)), 0);
    }
}

static void version(void **state) {
    struct fake_sidecar *fake = *state;
    assert_int_equal(fake_run_with(fake, (char *[]){"--version", NULL}, (char *[]){NULL}), 0);
    unsigned major;
    unsigned minor;
    unsigned patch;
    assert_int_equal(sscanf(fake->out, "gavelctl %u.%u.%u (", &major, &minor, &patch), 3);
    assert_non_null(strchr(fake->out, ')'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_command_lines, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(all_that_is_wrong_is_told, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(wrong_sockets, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(the_socket_is_found, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(help, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(version, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
