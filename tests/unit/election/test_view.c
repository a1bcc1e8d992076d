#include "election/view.h"

#include "driver.h"

#include <string.h>

static const struct instant start = {.boot_ns = 1000 * S, .real_ns = 5000 * S};

static struct view leading(void) {
    struct view view = {
        .state = STATE_LEADER, .reason = REASON_RENEWED, .token = 77, .valid_for_ns = 2 * S};
    lease_extend(&view.lease, start, 8 * S);
    return view;
}

static struct instant later(int64_t ns) {
    return (struct instant){.boot_ns = start.boot_ns + ns, .real_ns = start.real_ns + ns};
}

static void a_leader_is_told_so_with_token_and_validity(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    struct answer answer = view_answer(&view, start, &handouts);
    assert_true(answer.leader);
    assert_int_equal(answer.state, STATE_LEADER);
    assert_int_equal(answer.reason, REASON_RENEWED);
    assert_int_equal(answer.token, 77);
    assert_int_equal(answer.valid_ns, 2 * S);
    assert_int_equal(answer.deadline_ns, start.boot_ns + 2 * S);
    assert_int_equal(handouts.until_ns, start.boot_ns + 2 * S);
}

static void validity_ends_with_the_lease(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    struct answer answer = view_answer(&view, later(7 * S + 250 * MS), &handouts);
    assert_true(answer.leader);
    assert_int_equal(answer.valid_ns, 750 * MS);
    assert_int_equal(answer.deadline_ns, start.boot_ns + 8 * S);
}

static void real_shortens_the_validity(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    struct instant now = {.boot_ns = start.boot_ns, .real_ns = start.real_ns + 7 * S};
    assert_int_equal(view_answer(&view, now, &handouts).valid_ns, 1 * S);
}

static void validity_is_rounded_down_to_milliseconds(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    struct answer answer = view_answer(&view, later(8 * S - 5 * MS - 1), &handouts);
    assert_int_equal(answer.valid_ns, 5 * MS);
    assert_int_equal(handouts.until_ns, start.boot_ns + 8 * S - 1);
}

static void assert_not_leading(struct answer answer, enum election_reason reason) {
    assert_false(answer.leader);
    assert_int_equal(answer.state, STATE_UNKNOWN);
    assert_int_equal(answer.reason, reason);
    assert_int_equal(answer.token, 0);
    assert_int_equal(answer.valid_ns, 0);
    assert_int_equal(answer.deadline_ns, 0);
}

/* The core has not stepped: the flag still says leader, the clock does not. */
static void a_passed_deadline_answers_unknown(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {.until_ns = 5};
    assert_not_leading(view_answer(&view, later(8 * S), &handouts), REASON_DEADLINE);
    assert_int_equal(handouts.until_ns, 5);
    assert_int_equal(handouts.doubted_ns, 0);
}

/* Less than a millisecond is nothing to promise, and no clock has stepped. */
static void the_last_millisecond_is_the_deadline(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    assert_not_leading(view_answer(&view, later(8 * S - MS / 2), &handouts), REASON_DEADLINE);
    assert_int_equal(handouts.doubted_ns, 0);
}

static void a_doubt_is_noted_and_outlives_the_step_back(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {0};
    struct instant stepped = {.boot_ns = start.boot_ns + 1 * S, .real_ns = start.real_ns + 9 * S};
    assert_not_leading(view_answer(&view, stepped, &handouts), REASON_CLOCK_STEP);
    assert_int_equal(handouts.doubted_ns, stepped.boot_ns);
    /* back to where it was, before the core has heard of it */
    assert_not_leading(view_answer(&view, later(2 * S), &handouts), REASON_CLOCK_STEP);
    assert_int_equal(handouts.until_ns, 0);
}

static void a_doubt_that_the_core_has_settled_does_not_count(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {.doubted_ns = start.boot_ns - 3 * S};
    view.doubt_seen_ns = handouts.doubted_ns;
    assert_true(view_answer(&view, start, &handouts).leader);
}

static void a_latched_view_answers_unknown(void **state) {
    (void)state;
    struct view view = leading();
    view.lease.latched_ns = start.boot_ns;
    struct handouts handouts = {0};
    assert_not_leading(view_answer(&view, later(1 * S), &handouts), REASON_CLOCK_STEP);
}

static void an_earlier_handout_is_not_forgotten(void **state) {
    (void)state;
    struct view view = leading();
    struct handouts handouts = {.until_ns = start.boot_ns + 100 * S};
    assert_true(view_answer(&view, start, &handouts).leader);
    assert_int_equal(handouts.until_ns, start.boot_ns + 100 * S);
}

static void no_other_state_leads(void **state) {
    (void)state;
    for (int is = 0; is < STATE_COUNT; is++) {
        if (is == STATE_LEADER) {
            continue;
        }
        struct view view = leading();
        view.state = (enum election_state)is;
        struct handouts handouts = {0};
        struct answer answer = view_answer(&view, start, &handouts);
        assert_false(answer.leader);
        assert_int_equal(answer.state, is);
        assert_int_equal(answer.reason, REASON_RENEWED);
        assert_int_equal(answer.token, 0);
        assert_int_equal(answer.valid_ns, 0);
        assert_int_equal(handouts.until_ns, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_is_told_so_with_token_and_validity),
        cmocka_unit_test(validity_ends_with_the_lease),
        cmocka_unit_test(real_shortens_the_validity),
        cmocka_unit_test(validity_is_rounded_down_to_milliseconds),
        cmocka_unit_test(a_passed_deadline_answers_unknown),
        cmocka_unit_test(the_last_millisecond_is_the_deadline),
        cmocka_unit_test(a_doubt_is_noted_and_outlives_the_step_back),
        cmocka_unit_test(a_doubt_that_the_core_has_settled_does_not_count),
        cmocka_unit_test(a_latched_view_answers_unknown),
        cmocka_unit_test(an_earlier_handout_is_not_forgotten),
        cmocka_unit_test(no_other_state_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
