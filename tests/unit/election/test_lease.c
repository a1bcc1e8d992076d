#include "election/lease.h"

#include "driver.h"

static const struct instant start = {.boot_ns = 1000 * S, .real_ns = 5000 * S};

static struct instant later(int64_t boot_ns, int64_t real_ns) {
    return (struct instant){.boot_ns = start.boot_ns + boot_ns, .real_ns = start.real_ns + real_ns};
}

static void no_lease_is_over(void **state) {
    (void)state;
    struct lease lease = {0};
    assert_true(lease_is_over(&lease, start));
    assert_int_equal(lease_remaining_ns(&lease, start), 0);
}

static void is_good_from_the_send_on(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    assert_int_equal(lease_remaining_ns(&lease, later(3 * S, 3 * S)), 5 * S);
    assert_int_equal(lease_remaining_ns(&lease, later(8 * S - 1, 8 * S - 1)), 1);
    assert_false(lease_is_over(&lease, later(8 * S - 1, 0)));
    assert_true(lease_is_over(&lease, later(8 * S, 0)));
    assert_int_equal(lease_remaining_ns(&lease, later(8 * S, 0)), 0);
}

static void the_smaller_clock_counts(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    assert_int_equal(lease_remaining_ns(&lease, later(1 * S, 6 * S)), 2 * S);
    assert_int_equal(lease_remaining_ns(&lease, later(6 * S, 1 * S)), 2 * S);
}

static void real_alone_run_out_is_doubt(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    struct instant now = later(1 * S, 8 * S);
    assert_false(lease_is_over(&lease, now));
    assert_true(lease_is_in_doubt(&lease, now));
    assert_int_equal(lease_remaining_ns(&lease, now), 0);
    assert_false(lease_is_in_doubt(&lease, later(1 * S, 8 * S - 1)));
}

static void an_older_send_never_shortens(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, later(2 * S, 2 * S), 8 * S);
    lease_extend(&lease, start, 8 * S);
    assert_int_equal(lease.boot_deadline_ns, start.boot_ns + 10 * S);
}

/* After a step back the old REALTIME deadline would lie an hour too far ahead. */
static void a_yes_replaces_the_real_deadline(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    lease_extend(&lease, later(3 * S, 3 * S - 3600 * S), 8 * S);
    assert_int_equal(lease.real_deadline_ns, start.real_ns + 11 * S - 3600 * S);
    assert_int_equal(lease_remaining_ns(&lease, later(4 * S, 4 * S - 3600 * S)), 7 * S);
}

static void a_latched_lease_is_worth_nothing(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    lease.latched_ns = start.boot_ns + 1 * S;
    assert_int_equal(lease_remaining_ns(&lease, later(2 * S, 2 * S)), 0);
}

static void only_a_later_send_unlatches(void **state) {
    (void)state;
    struct lease lease = {0};
    lease_extend(&lease, start, 8 * S);
    lease.latched_ns = start.boot_ns + 2 * S;
    lease_extend(&lease, later(2 * S - 1, 2 * S - 1), 8 * S);
    assert_int_equal(lease.latched_ns, start.boot_ns + 2 * S);
    lease_extend(&lease, later(2 * S, 2 * S), 8 * S);
    assert_int_equal(lease.latched_ns, 0);
    assert_int_equal(lease_remaining_ns(&lease, later(3 * S, 3 * S)), 7 * S);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lease_is_over),
        cmocka_unit_test(is_good_from_the_send_on),
        cmocka_unit_test(the_smaller_clock_counts),
        cmocka_unit_test(real_alone_run_out_is_doubt),
        cmocka_unit_test(an_older_send_never_shortens),
        cmocka_unit_test(a_yes_replaces_the_real_deadline),
        cmocka_unit_test(a_latched_lease_is_worth_nothing),
        cmocka_unit_test(only_a_later_send_unlatches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
