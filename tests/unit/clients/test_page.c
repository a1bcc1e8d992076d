/* What a reader of the shared page is told: by the page's contents, its own clocks, and when. */
#include "page_kit.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_holder(struct page_fixture *fixture, const char *wanted) {
    char holder[GAVEL_PAGE_HOLDER_BYTES + 1];
    gavel_page_holder(fixture->reader, holder, sizeof holder);
    assert_string_equal(holder, wanted);
}

static void assert_not_leader(struct page_fixture *fixture, enum gavel_page_state state) {
    struct gavel_page_answer answer;
    memset(&answer, 0xff, sizeof answer);
    assert_false(gavel_page_check(fixture->reader, &answer));
    assert_false(answer.leader);
    assert_int_equal(answer.state, state);
    assert_int_equal(answer.problem, GAVEL_PAGE_GOOD);
    assert_int_equal(answer.token, 0);
    assert_int_equal(answer.valid_ns, 0);
    assert_int_equal(answer.deadline_ns, 0);
}

static void before_any_word(void **state) {
    struct page_fixture *fixture = *state;
    assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
    assert_holder(fixture, "");
}

static void leader(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    struct gavel_page_answer answer;
    int64_t before_ns = clock_now().boot_ns;
    assert_true(gavel_page_check(fixture->reader, &answer));
    int64_t after_ns = clock_now().boot_ns;
    assert_true(answer.leader);
    assert_int_equal(answer.state, GAVEL_PAGE_LEADER);
    assert_int_equal(answer.token, PAGE_TOKEN);
    assert_int_equal(answer.valid_ns, 2 * NS_PER_S);
    assert_in_range(answer.deadline_ns, before_ns + 2 * NS_PER_S, after_ns + 2 * NS_PER_S);
    assert_holder(fixture, "pod-a");
    assert_true(gavel_page_check(fixture->reader, NULL));
}

/* Never beyond the deadline, on whichever clock it is nearer. */
static void near_the_deadline(void **state) {
    struct page_fixture *fixture = *state;
    for (int clock = 0; clock < 2; clock++) {
        struct view view = page_leader_view(3600 * NS_PER_S);
        int64_t *deadline_ns =
            clock == 0 ? &view.lease.boot_deadline_ns : &view.lease.real_deadline_ns;
        *deadline_ns -= 3 * NS_PER_S;
        page_publish(fixture, &view);
        struct gavel_page_answer answer;
        assert_true(gavel_page_check(fixture->reader, &answer));
        assert_true(answer.valid_ns <= 5 * NS_PER_S && answer.valid_ns % NS_PER_MS == 0);
        assert_true(answer.deadline_ns <= view.lease.boot_deadline_ns);
    }
}

static void deadlines_that_have_passed(void **state) {
    struct page_fixture *fixture = *state;
    for (int clock = 0; clock < 2; clock++) {
        struct view view = page_leader_view(2 * NS_PER_S);
        int64_t *deadline_ns =
            clock == 0 ? &view.lease.boot_deadline_ns : &view.lease.real_deadline_ns;
        *deadline_ns -= PAGE_GOOD_FOR_NS;
        page_publish(fixture, &view);
        assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
        assert_holder(fixture, "");
    }
}

static void all_other_states(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    page_publish_state(fixture, STATE_FOLLOWER, "pod-b");
    assert_not_leader(fixture, GAVEL_PAGE_FOLLOWER);
    assert_holder(fixture, "pod-b");
    page_publish_state(fixture, STATE_PENDING, "");
    assert_not_leader(fixture, GAVEL_PAGE_PENDING);
    page_publish_state(fixture, STATE_RESIGNING, "pod-b");
    assert_not_leader(fixture, GAVEL_PAGE_RESIGNING);
    assert_holder(fixture, "");
    page_publish_state(fixture, STATE_UNKNOWN, "");
    assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
}

static void the_longest_holder(void **state) {
    struct page_fixture *fixture = *state;
    char longest[HOLDER_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    page_publish_state(fixture, STATE_FOLLOWER, longest);
    assert_holder(fixture, longest);
    char three[4];
    gavel_page_holder(fixture->reader, three, sizeof three);
    assert_string_equal(three, "xxx");
    gavel_page_holder(fixture->reader, NULL, 0);
}

/* The wall clock has run past the deadline, then somebody sets it back. */
static void a_doubt_lasts_until_a_renewal(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    struct view past = view;
    past.lease.real_deadline_ns -= 2 * PAGE_GOOD_FOR_NS;
    page_publish(fixture, &past);
    assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
    page_publish(fixture, &view); /* as if the clock had been set back: no newer request */
    assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
    view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    assert_true(gavel_page_check(fixture->reader, NULL));
}

/* The core's own doubt is shown at once. */
static void a_latched_lease_is_no_leader(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    view.lease.latched_ns = clock_now().boot_ns;
    page_publish(fixture, &view);
    assert_not_leader(fixture, GAVEL_PAGE_UNKNOWN);
}

/* Nobody tells who has read the page: it counts as read at the moment at which it changes. */
static void clearing_counts_as_read(void **state) {
    struct page_fixture *fixture = *state;
    struct handouts *handouts = &fixture->entries[0].handouts;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    assert_int_equal(handouts->until_ns, 0);
    struct gavel_page_answer answer;
    assert_true(gavel_page_check(fixture->reader, &answer));
    struct instant now = clock_now();
    struct handouts asked = board_handouts(&fixture->board, &fixture->entries[0], now);
    assert_true(asked.until_ns >= now.boot_ns + 2 * NS_PER_S);
    page_publish_state(fixture, STATE_RESIGNING, "");
    int64_t after_ns = clock_now().boot_ns;
    assert_true(handouts->until_ns >= answer.deadline_ns);
    assert_true(handouts->until_ns >= now.boot_ns + 2 * NS_PER_S);
    assert_true(handouts->until_ns <= after_ns + 2 * NS_PER_S + NS_PER_MS);
    asked = board_handouts(&fixture->board, &fixture->entries[0], clock_now());
    assert_int_equal(asked.until_ns, handouts->until_ns);
}

/* ... but never beyond the deadline that it showed. */
static void clearing_counts_no_longer_than_the_lease(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(3600 * NS_PER_S);
    page_publish(fixture, &view);
    struct handouts asked = board_handouts(&fixture->board, &fixture->entries[0], clock_now());
    assert_int_equal(asked.until_ns, view.lease.boot_deadline_ns);
    page_publish_state(fixture, STATE_RESIGNING, "");
    assert_int_equal(fixture->entries[0].handouts.until_ns, view.lease.boot_deadline_ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define PAGE_TEST(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, page_setup_fixture, page_teardown_fixture)
        PAGE_TEST(before_any_word),
        PAGE_TEST(leader),
        PAGE_TEST(near_the_deadline),
        PAGE_TEST(deadlines_that_have_passed),
        PAGE_TEST(all_other_states),
        PAGE_TEST(the_longest_holder),
        PAGE_TEST(a_doubt_lasts_until_a_renewal),
        PAGE_TEST(a_latched_lease_is_no_leader),
        PAGE_TEST(clearing_counts_as_read),
        PAGE_TEST(clearing_counts_no_longer_than_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
