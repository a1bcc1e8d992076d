#include "election/vouch.h"

#include "driver.h"

#define MARGIN (2 * S)
#define WAIT (10 * S)

struct watch {
    struct vouch vouch;
    int64_t now_ns;
    int64_t ahead_us; /* the server's clock minus BOOTTIME */
    const char *server;
    int64_t wait_ns;
};

static struct watch watching(void) {
    return (struct watch){
        .now_ns = 1000 * S, .ahead_us = 7000000, .server = SERVER_A, .wait_ns = WAIT};
}

/* A reply arrives `after` the one before; the server read its clock half way. */
static bool reply(struct watch *watch, int64_t after_ns, int64_t round_trip_ns) {
    watch->now_ns += after_ns;
    struct vouch_sample sample = {.server = watch->server,
                                  .server_now_us = (watch->now_ns - round_trip_ns / 2) / NS_PER_US +
                                                   watch->ahead_us,
                                  .sent_ns = watch->now_ns - round_trip_ns,
                                  .arrived_ns = watch->now_ns};
    vouch_add(&watch->vouch, &sample, MARGIN, watch->wait_ns);
    return vouch_holds(&watch->vouch, watch->now_ns, MARGIN, watch->wait_ns);
}

static bool replies(struct watch *watch, int count, int64_t after_ns) {
    bool holds = false;
    for (int i = 0; i < count; i++) {
        holds = reply(watch, after_ns, 2 * MS);
    }
    return holds;
}

static void nothing_measured_vouches_for_nothing(void **state) {
    (void)state;
    struct vouch vouch = {0};
    assert_false(vouch_holds(&vouch, 0, MARGIN, WAIT));
    assert_false(vouch_holds(&vouch, 1000 * S, MARGIN, WAIT));
}

static void holds_after_watching_for_the_wait(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_false(reply(&watch, 0, 2 * MS));
    assert_false(replies(&watch, 9, 1 * S));
    assert_false(reply(&watch, 1 * S - 1, 2 * MS));
    assert_true(reply(&watch, 1, 2 * MS));
}

static void only_with_the_newest_reply(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    assert_false(vouch_holds(&watch.vouch, watch.now_ns + 1, MARGIN, WAIT));
}

static void a_slow_reply_is_no_measurement(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    assert_false(reply(&watch, 1 * S, MARGIN / 4));
    assert_true(reply(&watch, 1 * S, MARGIN / 4 - 1));
    /* its clock reading could be off by the whole round trip, so it may not spoil the series */
    watch.ahead_us += 900000;
    assert_false(reply(&watch, 1 * S, MARGIN / 4));
    watch.ahead_us -= 900000;
    assert_true(reply(&watch, 1 * S, 2 * MS));
}

static void a_reply_from_before_its_request_is_no_measurement(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    assert_false(reply(&watch, 1 * S, -1 * MS));
}

static void a_step_forward_spoils_it_for_two_waits(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 30, 1 * S));
    watch.ahead_us += 501000; /* over margin/4 */
    for (int i = 0; i < 20; i++) {
        assert_false(reply(&watch, 1 * S, 2 * MS));
    }
    /* one wait more than promised at most, then the step is forgotten */
    assert_true(replies(&watch, 12, 1 * S));
}

static void a_step_back_spoils_it_too(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 30, 1 * S));
    watch.ahead_us -= 501000;
    assert_false(reply(&watch, 1 * S, 2 * MS));
}

static void there_and_back_again_is_seen(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 30, 1 * S));
    watch.ahead_us += 600000;
    reply(&watch, 1 * S, 2 * MS);
    watch.ahead_us -= 600000;
    for (int i = 0; i < 19; i++) {
        assert_false(reply(&watch, 1 * S, 2 * MS));
    }
}

static void a_quarter_of_the_margin_is_tolerated(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    watch.ahead_us += 500000;
    assert_true(reply(&watch, 1 * S, 2 * MS));
    watch.ahead_us += 1;
    assert_false(reply(&watch, 1 * S, 2 * MS));
}

static void another_server_starts_anew(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    watch.server = SERVER_B;
    assert_false(replies(&watch, 10, 1 * S));
    assert_true(reply(&watch, 1 * S, 2 * MS));
}

/* Even where the other one's reply was too slow to be measured. */
static void a_slow_reply_of_another_server_ends_the_series(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    watch.server = SERVER_B;
    assert_false(reply(&watch, 1 * S, 1 * S));
    watch.server = SERVER_A;
    assert_false(replies(&watch, 10, 1 * S));
    assert_true(reply(&watch, 1 * S, 2 * MS));
}

static void a_server_whose_name_only_begins_alike_is_another(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    watch.server = SERVER_A "x";
    assert_false(reply(&watch, 1 * S, 2 * MS));
}

static void an_unknown_server_resets(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    watch.server = "";
    assert_false(reply(&watch, 1 * S, 2 * MS));
    watch.server = SERVER_A;
    assert_false(replies(&watch, 10, 1 * S));
}

static void a_store_without_a_clock_resets(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    struct vouch_sample sample = {
        .server = SERVER_A, .sent_ns = watch.now_ns, .arrived_ns = watch.now_ns};
    vouch_add(&watch.vouch, &sample, MARGIN, WAIT);
    assert_false(vouch_holds(&watch.vouch, watch.now_ns, MARGIN, WAIT));
}

static void a_silence_longer_than_the_wait_starts_anew(void **state) {
    (void)state;
    struct watch watch = watching();
    assert_true(replies(&watch, 12, 1 * S));
    assert_true(reply(&watch, WAIT, 2 * MS));
    assert_false(reply(&watch, WAIT + 1, 2 * MS));
    assert_true(reply(&watch, WAIT, 2 * MS));
}

/* The step lies within the last two of the new waits, though not within those of the old ones. */
static void a_longer_wait_does_not_forget_a_step(void **state) {
    (void)state;
    struct watch watch = watching();
    watch.wait_ns = 1 * S;
    assert_true(replies(&watch, 100, S / 5));
    watch.ahead_us += 900000;
    assert_true(replies(&watch, 25, S / 5)); /* five seconds: forgotten with a wait of one */
    watch.wait_ns = WAIT;
    assert_false(replies(&watch, 10, 1 * S));
    assert_true(reply(&watch, 1 * S, 2 * MS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_measured_vouches_for_nothing),
        cmocka_unit_test(holds_after_watching_for_the_wait),
        cmocka_unit_test(only_with_the_newest_reply),
        cmocka_unit_test(a_slow_reply_is_no_measurement),
        cmocka_unit_test(a_reply_from_before_its_request_is_no_measurement),
        cmocka_unit_test(a_step_forward_spoils_it_for_two_waits),
        cmocka_unit_test(a_step_back_spoils_it_too),
        cmocka_unit_test(there_and_back_again_is_seen),
        cmocka_unit_test(a_quarter_of_the_margin_is_tolerated),
        cmocka_unit_test(another_server_starts_anew),
        cmocka_unit_test(a_slow_reply_of_another_server_ends_the_series),
        cmocka_unit_test(a_server_whose_name_only_begins_alike_is_another),
        cmocka_unit_test(an_unknown_server_resets),
        cmocka_unit_test(a_store_without_a_clock_resets),
        cmocka_unit_test(a_silence_longer_than_the_wait_starts_anew),
        cmocka_unit_test(a_longer_wait_does_not_forget_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
