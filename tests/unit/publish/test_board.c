#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board_desk.h"

static void test_find_by_name(void **state) {
    struct desk *desk = *state;
    enum board_find_error error = BOARD_NAME_NEEDED;
    assert_ptr_equal(board_find(&desk->board, "mail", 4, &error), &desk->entries[1]);
    assert_int_equal(error, BOARD_FOUND);
    assert_ptr_equal(board_find(&desk->board, "mailer", 6, &error), &desk->entries[2]);
    assert_ptr_equal(board_find(&desk->board, "mailer", 4, &error), &desk->entries[1]);
    assert_null(board_find(&desk->board, "mai", 3, &error));
    assert_int_equal(error, BOARD_UNKNOWN_ELECTION);
    assert_null(board_find(&desk->board, "mail\0x", 6, &error));
    assert_int_equal(error, BOARD_UNKNOWN_ELECTION);
}

static void test_find_without_name(void **state) {
    struct desk *desk = *state;
    enum board_find_error error = BOARD_FOUND;
    assert_null(board_find(&desk->board, "", 0, &error));
    assert_int_equal(error, BOARD_NAME_NEEDED);
    desk->board.count = 1;
    assert_ptr_equal(board_find(&desk->board, "", 0, &error), &desk->entries[0]);
    assert_int_equal(error, BOARD_FOUND);
}

static void test_answer_is_noted(void **state) {
    struct desk *desk = *state;
    lead(&desk->entries[1], 8 * NS_PER_S);
    int64_t before_ns = clock_now().boot_ns;
    struct answer answer = board_answer(&desk->board, &desk->entries[1]);
    assert_true(answer.leader);
    assert_int_equal(answer.valid_ns, 2 * NS_PER_S);
    assert_true(answer.deadline_ns >= before_ns + 2 * NS_PER_S);
    assert_true(answer.deadline_ns <= clock_now().boot_ns + 2 * NS_PER_S);
    assert_int_equal(desk->entries[1].handouts.until_ns, answer.deadline_ns);
    assert_int_equal(desk->entries[0].handouts.until_ns, 0);
}

/* Told a little before the end of a lease which is renewed then: a drain has to wait all the same.
 */
static void test_who_measures_no_time_is_promised_the_margin(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[1];
    desk->board.unmeasured_ns = NS_PER_S;
    lead(entry, 100 * NS_PER_MS);
    struct answer answer = board_answer(&desk->board, entry);
    assert_true(answer.leader && answer.valid_ns <= 100 * NS_PER_MS);
    assert_int_equal(entry->handouts.until_ns, answer.deadline_ns - answer.valid_ns + NS_PER_S);
    (void)board_answer_app(&desk->board,
                           entry); /* an application measures, and says when it is done */
    assert_true(entry->handouts.app_until_ns <= clock_now().boot_ns + 100 * NS_PER_MS);
    lead(entry, 8 * NS_PER_S);
    answer = board_answer(&desk->board, entry);
    assert_int_equal(entry->handouts.until_ns, answer.deadline_ns);
}

static void test_answer_looks_at_the_clock(void **state) {
    struct desk *desk = *state;
    lead(&desk->entries[0], 0);
    struct answer answer = board_answer(&desk->board, &desk->entries[0]);
    assert_false(answer.leader);
    assert_int_equal(answer.state, STATE_UNKNOWN);
    assert_int_equal(desk->entries[0].handouts.until_ns, 0);
}

static void test_doubt_is_told_until_the_core_knows(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[2];
    lead(entry, 8 * NS_PER_S);
    board_answer(&desk->board, entry);
    assert_int_equal(desk->doubts[2], 0);
    entry->view.lease.real_deadline_ns = clock_now().real_ns - 1;
    assert_false(board_answer(&desk->board, entry).leader);
    assert_int_equal(desk->doubts[2], 1);
    assert_int_equal(desk->doubts[0], 0);
    entry->view.lease.latched_ns = clock_now().boot_ns;
    assert_false(board_answer(&desk->board, entry).leader);
    assert_int_equal(desk->doubts[2], 1);
}

static void test_holder(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    snprintf(entry->view.holder, sizeof entry->view.holder, "pod-b");
    static const struct {
        enum election_state state;
        const char *holder;
    } cases[] = {
        {STATE_UNKNOWN, ""}, {STATE_FOLLOWER, "pod-b"}, {STATE_PENDING, ""}, {STATE_RESIGNING, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        entry->view.state = cases[i].state;
        struct answer answer = board_answer(&desk->board, entry);
        assert_string_equal(board_holder(&desk->board, entry, &answer), cases[i].holder);
    }
    lead(entry, NS_PER_S);
    struct answer answer = board_answer(&desk->board, entry);
    assert_string_equal(board_holder(&desk->board, entry, &answer), "pod-a");
    entry->view.lease.boot_deadline_ns = 1;
    answer = board_answer(&desk->board, entry);
    assert_string_equal(board_holder(&desk->board, entry, &answer), "");
}

static void test_holder_since(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    entry->view.holder_since_ms = 7;
    entry->view.granted_ms = 9;
    entry->view.state = STATE_FOLLOWER;
    struct answer answer = board_answer(&desk->board, entry);
    assert_int_equal(board_holder_since_ms(&desk->board, entry, &answer), 0); /* nobody is known */
    snprintf(entry->view.holder, sizeof entry->view.holder, "pod-b");
    assert_int_equal(board_holder_since_ms(&desk->board, entry, &answer), 7);
    static const enum election_state silent[] = {STATE_UNKNOWN, STATE_PENDING, STATE_RESIGNING};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        entry->view.state = silent[i];
        answer = board_answer(&desk->board, entry);
        assert_int_equal(board_holder_since_ms(&desk->board, entry, &answer), 0);
    }
    lead(entry, NS_PER_S);
    answer = board_answer(&desk->board, entry);
    assert_int_equal(board_holder_since_ms(&desk->board, entry, &answer), 9);
    entry->view.lease.boot_deadline_ns = 1;
    answer = board_answer(&desk->board, entry);
    assert_int_equal(board_holder_since_ms(&desk->board, entry, &answer), 0);
}

static void expect_detail(struct desk *desk, struct board_entry *entry, const char *start,
                          const char *end) {
    char text[512] = "untouched";
    struct answer answer = board_answer(&desk->board, entry);
    board_detail(entry, &answer, text, sizeof text);
    size_t length = strlen(text);
    if (strncmp(text, start, strlen(start)) != 0 || length < strlen(end) ||
        strcmp(text + length - strlen(end), end) != 0) {
        fail_msg("\"%s\" is not \"%s...%s\"", text, start, end);
    }
}

static void test_detail(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    entry->view.state = STATE_PENDING;
    entry->view.reason = REASON_WAITING_FOR_OLD_LEASE;
    entry->view.doubt = DOUBT_NO_RECORD;
    entry->view.wait_until_ns = clock_now().boot_ns + 8340 * NS_PER_MS;
    expect_detail(desk, entry, "waits 8.3 s more: ", prior_doubt_text(DOUBT_NO_RECORD));
    entry->view.wait_until_ns = clock_now().boot_ns;
    expect_detail(desk, entry, "the wait is over", "");
    entry->view.state = STATE_RESIGNING;
    expect_detail(desk, entry, "keeps the lock until", "");
    entry->view.state = STATE_UNKNOWN;
    entry->view.reason = REASON_STORE_UNREACHABLE;
    expect_detail(desk, entry, "the store does not answer", "");
    board_set_problem(entry, "no answer in time");
    expect_detail(desk, entry, "the store does not answer: no answer in time", "");
    entry->view.reason = REASON_STORE_REFUSED;
    expect_detail(desk, entry, "the store answers with an error: no answer in time", "");
    entry->view.reason = REASON_HELD_BY_OTHER;
    expect_detail(desk, entry, "no answer in time", "");
    entry->view.state = STATE_PENDING;
    entry->view.reason = REASON_STORE_REFUSED;
    expect_detail(desk, entry, "the store answers with an error: no answer in time", "");
    lead(entry, NS_PER_S);
    expect_detail(desk, entry, "the last renewal was not confirmed: no answer in time", "");
    board_set_problem(entry, "");
    lead(entry, NS_PER_S);
    char text[32] = "untouched";
    struct answer answer = board_answer(&desk->board, entry);
    board_detail(entry, &answer, text, sizeof text);
    assert_string_equal(text, "");
}

static void test_detail_is_cut(void **state) {
    struct desk *desk = *state;
    struct board_entry *entry = &desk->entries[0];
    entry->view.reason = REASON_STORE_UNREACHABLE;
    struct answer answer = board_answer(&desk->board, entry);
    char text[10];
    board_detail(entry, &answer, text, sizeof text);
    assert_string_equal(text, "the store");
}

struct listener {
    struct board_observer observer;
    struct board *board;
    struct board_entry *told;
    unsigned times;
    struct listener *dismiss; /* who leaves when this one is told */
    struct listener *invite;  /* who joins then */
};

static void on_changed(struct board_observer *observer, struct board_entry *entry) {
    struct listener *listener = (struct listener *)observer; /* its first member */
    listener->told = entry;
    listener->times++;
    if (listener->dismiss != NULL) {
        board_unobserve(&listener->dismiss->observer);
    }
    if (listener->invite != NULL) {
        board_observe(listener->board, &listener->invite->observer);
        listener->invite = NULL;
    }
}

static void join(struct desk *desk, struct listener *listener) {
    listener->board = &desk->board;
    listener->observer.changed = on_changed;
    board_observe(&desk->board, &listener->observer);
}

static void publish(struct desk *desk, bool changed) {
    struct view view = {.state = STATE_FOLLOWER, .index = 8};
    board_publish(&desk->board, &desk->entries[1], &view, changed);
}

static void test_publish(void **state) {
    struct desk *desk = *state;
    struct listener one = {.times = 0};
    struct listener two = {.times = 0};
    join(desk, &one);
    join(desk, &two);
    publish(desk, false);
    assert_int_equal(desk->entries[1].view.index, 8);
    assert_int_equal(one.times + two.times, 0);
    publish(desk, true);
    assert_int_equal(one.times, 1);
    assert_int_equal(two.times, 1);
    assert_ptr_equal(one.told, &desk->entries[1]);
    board_unobserve(&one.observer);
    board_unobserve(&one.observer); /* once is enough, twice does no harm */
    publish(desk, true);
    assert_int_equal(one.times, 1);
    assert_int_equal(two.times, 2);
    board_unobserve(&two.observer);
    assert_null(desk->board.observers);
}

/* Each sends another away: whatever the order, two are told and one is not. */
static void test_observers_leave_while_told(void **state) {
    struct desk *desk = *state;
    struct listener listeners[3] = {{.times = 0}};
    for (size_t i = 0; i < 3; i++) {
        join(desk, &listeners[i]);
        listeners[i].dismiss = &listeners[(i + 1) % 3];
    }
    publish(desk, true);
    assert_int_equal(listeners[0].times + listeners[1].times + listeners[2].times, 2);
    for (size_t i = 0; i < 3; i++) {
        board_unobserve(&listeners[i].observer);
    }
    struct listener alone = {.times = 0};
    alone.dismiss = &alone;
    join(desk, &alone);
    publish(desk, true);
    publish(desk, true);
    assert_int_equal(alone.times, 1);
    assert_null(desk->board.observers);
}

static void test_observers_join_while_told(void **state) {
    struct desk *desk = *state;
    struct listener late = {.observer.changed = on_changed};
    struct listener host = {.invite = &late};
    join(desk, &host);
    publish(desk, true);
    assert_int_equal(host.times, 1);
    assert_int_equal(late.times, 0);
    publish(desk, true);
    assert_int_equal(host.times, 2);
    assert_int_equal(late.times, 1);
    board_unobserve(&host.observer);
    board_unobserve(&late.observer);
    assert_null(desk->board.observers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_find_by_name),
        TEST(test_find_without_name),
        TEST(test_answer_is_noted),
        TEST(test_who_measures_no_time_is_promised_the_margin),
        TEST(test_answer_looks_at_the_clock),
        TEST(test_doubt_is_told_until_the_core_knows),
        TEST(test_holder),
        TEST(test_holder_since),
        TEST(test_detail),
        TEST(test_detail_is_cut),
        TEST(test_publish),
        TEST(test_observers_leave_while_told),
        TEST(test_observers_join_while_told),
    };
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
