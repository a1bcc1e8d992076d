#include "cli_kit.h"

#include "cli/client.h"

/* wait: what it takes for reached, timed out, and no sidecar. */

#define LEADER "leader 7 60000 1\n"
#define STAYS(request_, text_)                                                                     \
    { .request = (request_), .text = (text_), .stays = true }

static void a_leader_is_reached(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, STAYS("watch billing", "follower -\nfollower pod-b\n" LEADER),
         ANSWER("check billing", LEADER));
    assert_int_equal(RUN(fake, "wait", "billing"), 0);
    assert_int_equal(strncmp(fake->out, "leader 7 59", 11), 0);
    fake_join(fake);
}

/* What is pushed only says when to ask. */
static void a_pushed_line_is_not_enough(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, STAYS("watch", LEADER LEADER), ANSWER("check", "follower -\n"),
         ANSWER("check", LEADER));
    assert_int_equal(RUN(fake, "wait", "--for=leader"), 0);
    fake_join(fake);
}

static void a_follower_times_out(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, STAYS("watch", "follower pod-b\n"));
    int64_t began_ns = client_now_ns();
    assert_int_equal(RUN(fake, "wait", "--timeout", "200ms"), 1);
    int64_t took_ns = client_now_ns() - began_ns;
    assert_true(took_ns >= INT64_C(200000000) && took_ns < INT64_C(5000000000));
    assert_string_equal(fake->out, "");
    assert_non_null(strstr(fake->err, "timed out"));
    fake_join(fake);
}

static void no_sidecar(void **state) {
    struct fake_sidecar *fake = *state;
    assert_int_equal(RUN(fake, "wait", "--timeout=250ms"), 2);
    assert_non_null(strstr(fake->err, fake->socket));
    assert_int_equal(RUN(fake, "wait", "--for", "ready", "--timeout=250ms"), 2);
}

/* It hangs: it is there, but does not answer. */
static void a_silent_sidecar_is_none(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, STAYS("watch", ""));
    assert_int_equal(RUN(fake, "wait", "--timeout=250ms"), 2);
    fake_join(fake);
    FAKE(fake, STAYS("check", ""));
    assert_int_equal(RUN(fake, "wait", "--for=ready", "--timeout=250ms"), 2);
    fake_join(fake);
}

static void goes_on_after_a_restart(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("watch", "follower -\n"), ANSWER("watch", "error busy later\n"),
         ANSWER("watch", "lead"), ANSWER("watch", ""), ANSWER("watch", "junk\n"),
         STAYS("watch", LEADER), ANSWER("check", LEADER));
    assert_int_equal(RUN(fake, "wait"), 0);
    fake_join(fake);
}

static void names_that_are_wrong(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("watch x", "error unknown-election no such\n"));
    assert_int_equal(RUN(fake, "wait", "x"), 64);
    assert_non_null(strstr(fake->err, "unknown-election"));
    fake_join(fake);
    FAKE(fake, ANSWER("watch", "error name-needed several\n"));
    assert_int_equal(RUN(fake, "wait"), 64);
    fake_join(fake);
    FAKE(fake, ANSWER("check x", "error unknown-election no such\n"));
    assert_int_equal(RUN(fake, "wait", "--for", "ready", "x"), 64);
    fake_join(fake);
}

static void ready_is_any_answer(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, ANSWER("check", "error busy later\n"), ANSWER("check", "follower -\n"));
    assert_int_equal(RUN(fake, "wait", "--for", "ready"), 0);
    fake_join(fake);
    FAKE(fake, ANSWER("check", "error name-needed several\n"));
    assert_int_equal(RUN(fake, "wait", "--for", "ready"), 0);
    assert_string_equal(fake->err, "");
    fake_join(fake);
    FAKE(fake, ANSWER("check", LEADER));
    assert_int_equal(RUN(fake, "wait", "--for", "ready"), 0);
    fake_join(fake);
}

static void a_sidecar_that_is_never_ready(void **state) {
    struct fake_sidecar *fake = *state;
    FAKE(fake, {.request = "check", .text = "error busy later\n"});
    assert_int_equal(RUN(fake, "wait", "--for", "ready", "--timeout=300ms"), 1);
    assert_non_null(strstr(fake->err, "timed out"));
    fake_join(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_leader_is_reached, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_pushed_line_is_not_enough, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_follower_times_out, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(no_sidecar, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_silent_sidecar_is_none, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(goes_on_after_a_restart, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(names_that_are_wrong, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(ready_is_any_answer, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(a_sidecar_that_is_never_ready, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
