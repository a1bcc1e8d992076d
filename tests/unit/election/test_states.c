#include "election/states.h"

#include "driver.h"
#include "election/internal.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void state_names_are_the_stable_ones(void **state) {
    (void)state;
    static const char *const names[STATE_COUNT] = {"unknown", "follower", "pending", "leader",
                                                   "resigning"};
    for (int i = 0; i < STATE_COUNT; i++) {
        assert_string_equal(election_state_name((enum election_state)i), names[i]);
    }
    assert_string_equal(election_state_name((enum election_state)STATE_COUNT), "");
}

static void reason_names_are_the_stable_ones(void **state) {
    (void)state;
    static const char *const names[REASON_COUNT] = {"starting",
                                                    "acquired",
                                                    "renewed",
                                                    "held-by-other",
                                                    "waiting-for-old-lease",
                                                    "renewal-refused",
                                                    "foreign-value",
                                                    "deadline",
                                                    "store-unreachable",
                                                    "store-refused",
                                                    "resigned",
                                                    "app-gone",
                                                    "app-hung",
                                                    "app-unhealthy",
                                                    "draining",
                                                    "clock-step",
                                                    "paused"};
    for (int i = 0; i < REASON_COUNT; i++) {
        assert_string_equal(election_reason_name((enum election_reason)i), names[i]);
    }
    assert_string_equal(election_reason_name((enum election_reason)REASON_COUNT), "");
}

static void warning_names_are_the_stable_ones(void **state) {
    (void)state;
    static const char *const names[WARNING_COUNT] = {
        "identity-not-unique", "local-store-in-a-pod", "store-replicated-async",
        "eviction-policy",     "even-nodes",           "node-list-differs",
        "listener-exposed",    "key-without-expiry",   "overlap-possible"};
    for (unsigned i = 0; i < WARNING_COUNT; i++) {
        assert_string_equal(warning_name(i), names[i]);
    }
    assert_string_equal(warning_name(WARNING_COUNT), "");
    assert_int_equal(WARNING_OVERLAP_POSSIBLE, 1 << (WARNING_COUNT - 1));
}

static void safety_names_are_the_stable_ones(void **state) {
    (void)state;
    static const char *const names[FAILOVER_COUNT] = {NULL, "none", "asynchronous", "acknowledged",
                                                      "synchronous"};
    assert_null(failover_safety_name(FAILOVER_UNKNOWN));
    for (int i = FAILOVER_NONE; i < FAILOVER_COUNT; i++) {
        assert_string_equal(failover_safety_name((enum failover_safety)i), names[i]);
    }
    assert_null(failover_safety_name(FAILOVER_COUNT));
}

static void every_doubt_has_a_sentence_of_its_own(void **state) {
    (void)state;
    assert_string_equal(prior_doubt_text(DOUBT_NONE), "");
    for (int i = DOUBT_NONE + 1; i < DOUBT_COUNT; i++) {
        const char *text = prior_doubt_text((enum prior_doubt)i);
        assert_true(strlen(text) > 10);
        for (int j = DOUBT_NONE + 1; j < i; j++) {
            assert_string_not_equal(text, prior_doubt_text((enum prior_doubt)j));
        }
    }
    assert_string_equal(prior_doubt_text((enum prior_doubt)DOUBT_COUNT), "");
}

/* Rows: from; columns: to; in the order of the enum. */
static const bool legal[STATE_COUNT][STATE_COUNT] = {
    [STATE_UNKNOWN] = {false, true, true, true, true},
    [STATE_FOLLOWER] = {true, false, true, true, false},
    [STATE_PENDING] = {true, true, false, true, true},
    [STATE_LEADER] = {true, true, false, false, true},
    [STATE_RESIGNING] = {true, true, false, false, false},
};

static void the_table_has_each_legal_change_once(void **state) {
    (void)state;
    size_t count = 0;
    for (int from = 0; from < STATE_COUNT; from++) {
        for (int to = 0; to < STATE_COUNT; to++) {
            const struct election_transition *found =
                election_transition_find((enum election_state)from, (enum election_state)to);
            assert_int_equal(found != NULL, legal[from][to]);
            count += found != NULL;
            if (found) {
                assert_int_equal(found->from, from);
                assert_int_equal(found->to, to);
                assert_true(strlen(found->comment) > 10);
            }
        }
    }
    assert_int_equal(election_transition_count, count);
}

/* A crash lets the lease lapse, which is safe; an unplanned change of state may not be. */
static void an_illegal_change_ends_the_process(void **state) {
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        struct sigaction action = {.sa_handler = SIG_DFL}; /* cmocka and sanitizers catch it */
        (void)sigaction(SIGILL, &action, NULL);
        (void)sigaction(SIGTRAP, &action, NULL);
        struct election election = {.view.state = STATE_FOLLOWER};
        struct election_event event = {.type = EVENT_TICK};
        struct step step = {.election = &election, .event = &event};
        step_move(&step, STATE_RESIGNING, REASON_RESIGNED);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void the_same_state_only_gets_the_reason(void **state) {
    (void)state;
    struct election election = {
        .view = {.state = STATE_FOLLOWER, .since_real_ns = 7, .holder = "pod-b"}};
    struct election_event event = {.type = EVENT_TICK, .now = {.boot_ns = 50, .real_ns = 60}};
    struct step step = {.election = &election, .event = &event};
    step_move(&step, STATE_FOLLOWER, REASON_RESIGNED);
    assert_int_equal(election.view.reason, REASON_RESIGNED);
    assert_int_equal(election.view.since_real_ns, 7);
    assert_string_equal(election.view.holder, "pod-b");
    step_move(&step, STATE_UNKNOWN, REASON_STORE_UNREACHABLE);
    assert_int_equal(election.view.since_real_ns, 60);
    assert_string_equal(election.view.holder, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_names_are_the_stable_ones),
        cmocka_unit_test(reason_names_are_the_stable_ones),
        cmocka_unit_test(warning_names_are_the_stable_ones),
        cmocka_unit_test(safety_names_are_the_stable_ones),
        cmocka_unit_test(every_doubt_has_a_sentence_of_its_own),
        cmocka_unit_test(the_table_has_each_legal_change_once),
        cmocka_unit_test(an_illegal_change_ends_the_process),
        cmocka_unit_test(the_same_state_only_gets_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
