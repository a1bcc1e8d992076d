#include "cli_kit.h"

#include "cli/client.h"

/* check, status, resign: what is asked, printed and returned. */

#define LEADER "leader 1796157414879 60000 1\n"

static void check_of_a_leader(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("check", LEADER), ANSWER("check billing", LEADER));
    assert_int_equal(RUN(fake, "check"), 0);
    assert_int_equal(strncmp(fake->out, "leader 1796157414879 59", 23), 0);
    assert_string_equal(fake->err, "");
    assert_int_equal(RUN(fake, "check", "billing"), 0);
    fake_join(fake);
}

static void check_of_a_follower(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("check", "follower pod-b\n"));
    assert_int_equal(RUN(fake, "check"), 1);
    assert_string_equal(fake->out, "follower pod-b\n");
    fake_join(fake);
}

/* The validity runs from before the question, however long the answer took. */
static void a_late_leader_is_none(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("check", "leader 5 0 1\n"),
         {.request = "check", .text = "leader 5 200 1\n", .delay_ms = 250});
    assert_int_equal(RUN(fake, "check"), 1);
    assert_string_equal(fake->out, "follower -\n");
    assert_int_equal(RUN(fake, "check"), 1);
    assert_string_equal(fake->out, "follower -\n");
    fake_join(fake);
}

static void errors_of_the_sidecar(void **state) {
    struct fake_sidecar *fake = *state;
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"error unknown-election no election of that name here\n", 64},
        {"error name-needed there are several elections: name one\n", 64},
        {"error busy later\n", 2},
        {"error shutting-down the process is ending\n", 2},
    };
    char commands[3][8] = {"check", "status", "resign"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t j = 0; j < 3; j++) {
            FAKE(fake, ANSWER(commands[j], cases[i].line));
            assert_int_equal(RUN(fake, commands[j]), cases[i].status);
            assert_string_equal(fake->out, "");
            assert_non_null(strchr(fake->err, ':'));
            fake_join(fake);
        }
    }
    assert_string_equal(fake->err, "gavelctl resign: shutting-down: the process is ending\n");
}

static void bad_answers_are_none(void **state) {
    struct fake_sidecar *fake = *state;
    static char overlong[40000];
    memset(overlong, 'x', sizeof overlong - 2);
    overlong[sizeof overlong - 2] = '\n';
    const char *const texts[] = {
        "",      "leader 5 60000",       "leader 5 60000 1", "follower",
        "\n",    "leader 5 60000 1 2\n", "ok ok\n",          "HTTP/1.1 200 OK\r\n",
        overlong};
    char commands[3][8] = {"check", "status", "resign"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t j = 0; j < 3; j++) {
            FAKE(fake, ANSWER(commands[j], texts[i]));
            assert_int_equal(RUN(fake, commands[j]), 2);
            assert_string_equal(fake->out, "");
            assert_non_null(strstr(fake->err, "no answer from the sidecar at /tmp/"));
            fake_join(fake);
        }
    }
}

/* What a good line stands behind, or what stands behind it, makes it no answer. */
static void hidden_good_lines_are_none(void **state) {
    struct fake_sidecar *fake = *state;
    static char overlong[CLIENT_LINE_MOST + 40];
    memset(overlong, 'x', CLIENT_LINE_MOST + 1);
    (void)strcpy(overlong + CLIENT_LINE_MOST + 1, LEADER);
    static const char with_nul[] = "leader 5 60000 1\0junk\n";
    FAKE(fake, ANSWER("check", overlong),
         {.request = "check", .text = with_nul, .size = sizeof with_nul - 1});
    assert_int_equal(RUN(fake, "check"), 2);
    assert_int_equal(RUN(fake, "check"), 2);
    fake_join(fake);
}

static void the_first_of_two_lines_counts(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("check", "follower a\nleader 5 60000 1\n"));
    assert_int_equal(RUN(fake, "check"), 1);
    assert_string_equal(fake->out, "follower a\n");
    fake_join(fake);
}

static void nobody_there(void **state) {
    struct fake_sidecar *fake = *state;
    assert_int_equal(RUN(fake, "check"), 2);
    assert_non_null(strstr(fake->err, fake->socket));
    assert_non_null(strstr(fake->err, "No such file"));
    assert_int_equal(RUN(fake, "status"), 2);
    assert_int_equal(RUN(fake, "resign"), 2);
}

static void silence_ends_with_the_timeout(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, {.request = "check", .text = "lead", .stays = true});
    int64_t began_ns = client_now_ns();
    assert_int_equal(RUN(fake, "check", "--timeout", "150ms"), 2);
    int64_t took_ns = client_now_ns() - began_ns;
    assert_true(took_ns >= INT64_C(150000000) && took_ns < INT64_C(5000000000));
    assert_non_null(strstr(fake->err, "no answer in time"));
    fake_join(fake);
}

static const char answer[] =
    "{\"election\":\"billing\",\"namespace\":\"default\",\"identity\":\"pod-a\",\"state\":"
    "\"follower\",\"leader\":false,\"token\":null,\"valid_for_ms\":0,\"holder\":\"\",\"since\":"
    "\"2026-12-01T20:36:54.879Z\",\"reason\":\"starting\",\"warnings\":[\"even-nodes\","
    "\"overlap-possible\"],\"index\":17,\"store\":\"redis\",\"lock_space\":\"x\",\"mode\":"
    "\"correctness\",\"holder_since\":null,\"failover_safety\":\"none\",\"new\":{\"a\":[1]}}\n";

static void status_for_people(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("status", answer), ANSWER("status billing", answer));
    assert_int_equal(RUN(fake, "status"), 0);
    assert_string_equal(fake->out, "election      billing\n"
                                   "namespace     default\n"
                                   "identity      pod-a\n"
                                   "state         follower\n"
                                   "since         2026-12-01T20:36:54.879Z\n"
                                   "token         -\n"
                                   "valid for ms  0\n"
                                   "holder        -\n"
                                   "holder since  -\n"
                                   "reason        starting\n"
                                   "warnings      even-nodes, overlap-possible\n"
                                   "index         17\n"
                                   "store         redis\n"
                                   "lock space    x\n"
                                   "mode          correctness\n"
                                   "failover      none\n");
    assert_int_equal(RUN(fake, "status", "--json", "billing"), 0);
    assert_string_equal(fake->out, answer);
    fake_join(fake);
}

static void resigning(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("resign billing", "ok\n"));
    assert_int_equal(RUN(fake, "resign", "billing"), 0);
    assert_string_equal(fake->out, "ok\n");
    fake_join(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(check_of_a_leader, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(check_of_a_follower, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_late_leader_is_none, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(errors_of_the_sidecar, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(bad_answers_are_none, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(hidden_good_lines_are_none, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(the_first_of_two_lines_counts, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(nobody_there, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(silence_ends_with_the_timeout, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(status_for_people, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(resigning, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
