#include "base/build.h"
#include "base/log.h"
#include "health/metrics.h"
#include "health_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 1000

/* A sample with exactly this name, labels and value. */
static void expect_sample(const char *page, const char *sample) {
    char line[512];
    int length = snprintf(line, sizeof line, "\n%s\n", sample);
    assert_true(length > 0 && (size_t)length < sizeof line);
    if (strstr(page, line) == NULL) {
        fail_msg("no sample \"%s\"", sample);
    }
}

static double value_of(const char *page, const char *series) {
    char line[512];
    int length = snprintf(line, sizeof line, "\n%s ", series);
    assert_true(length > 0 && (size_t)length < sizeof line);
    const char *found = strstr(page, line);
    if (found == NULL) {
        fail_msg("no series \"%s\"", series);
        return 0;
    }
    return strtod(found + strlen(line), NULL);
}

static void fill_counters(struct health_fixture *fixture) {
    struct counters *counters = &fixture->counters;
    for (int i = 0; i < 4; i++) {
        counters_transition(&counters->elections[0], STATE_LEADER, REASON_ACQUIRED);
        counters_transition(&counters->elections[0], STATE_UNKNOWN, REASON_DEADLINE);
    }
    counters_transition(&counters->elections[0], STATE_UNKNOWN, REASON_STORE_UNREACHABLE);
    counters->elections[0].last_renewal_real_ns = INT64_C(1796157414879) * NS_PER_MS;
    counters->store_requests[COUNTER_RENEW][RESULT_YES] = 11;
    counters->store_requests[COUNTER_ACQUIRE][RESULT_UNSURE] = 2;
    histogram_add(&counters->store_durations[COUNTER_RENEW], 0.0003);
    histogram_add(&counters->store_durations[COUNTER_RENEW], 0.003);
    histogram_add(&counters->store_durations[COUNTER_RENEW], 60);
    counters->loop_lag_s = 0.25;
    counters->loop_stalls = 5;
    counters->clock_steps_real = 6;
    counters->watchers = 7;
    counters->api_requests[LISTENER_SOCKET][CODE_OK] = 8;
    fixture->store = (struct store_status){.up = true, .reconnects = 9, .clock_steps = 10};
    fixture->entries[1].view.warnings = WARNING_OVERLAP_POSSIBLE;
    fixture->board.process_warnings = WARNING_LISTENER_EXPOSED;
}

static const char *const samples[] = {
    "gavel_leader{election=\"billing\"} 1",
    "gavel_leader{election=\"mail\"} 0",
    "gavel_state{election=\"billing\",state=\"leader\"} 1",
    "gavel_state{election=\"billing\",state=\"follower\"} 0",
    "gavel_state{election=\"mail\",state=\"follower\"} 1",
    "gavel_fencing_token{election=\"billing\"} 1796157414879",
    "gavel_fencing_token{election=\"mail\"} 0",
    "gavel_lease_remaining_seconds{election=\"mail\"} 0",
    "gavel_transitions_total{election=\"billing\",to=\"leader\",reason=\"acquired\"} 4",
    "gavel_transitions_total{election=\"billing\",to=\"unknown\",reason=\"deadline\"} 4",
    "gavel_transitions_total{election=\"billing\",to=\"unknown\",reason=\"store-unreachable\"} 1",
    "gavel_last_renewal_timestamp_seconds{election=\"billing\"} 1796157414.879",
    "leader_election_master_status{name=\"billing\"} 1",
    "leader_election_master_status{name=\"mail\"} 0",
    "gavel_store_requests_total{op=\"renew\",result=\"yes\"} 11",
    "gavel_store_requests_total{op=\"acquire\",result=\"unsure\"} 2",
    "gavel_store_requests_total{op=\"release\",result=\"no\"} 0",
    "gavel_store_request_duration_seconds_bucket{op=\"renew\",le=\"0.0005\"} 1",
    "gavel_store_request_duration_seconds_bucket{op=\"renew\",le=\"0.005\"} 2",
    "gavel_store_request_duration_seconds_bucket{op=\"renew\",le=\"2.5\"} 2",
    "gavel_store_request_duration_seconds_bucket{op=\"renew\",le=\"+Inf\"} 3",
    "gavel_store_request_duration_seconds_sum{op=\"renew\"} 60.0033",
    "gavel_store_request_duration_seconds_count{op=\"renew\"} 3",
    "gavel_store_up 1",
    "gavel_store_reconnects_total 9",
    "gavel_warning{code=\"listener-exposed\"} 1",
    "gavel_warning{code=\"overlap-possible\"} 1",
    "gavel_warning{code=\"eviction-policy\"} 0",
    "gavel_loop_lag_seconds 0.25",
    "gavel_loop_stalls_total 5",
    "gavel_clock_steps_total{clock=\"real\"} 6",
    "gavel_clock_steps_total{clock=\"store\"} 10",
    "gavel_api_requests_total{listener=\"socket\",code=\"ok\"} 8",
    "gavel_api_requests_total{listener=\"http\",code=\"421\"} 0",
    "gavel_api_requests_total{listener=\"health\",code=\"200\"} 0",
    "gavel_watchers 7",
};

static void test_metrics(void **state) {
    struct health_fixture *fixture = *state;
    fixture->board.count = 2;
    health_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    fill_counters(fixture);
    struct reply reply;
    health_ask(fixture, "GET /metrics HTTP/1.1" END, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Type"),
                        "text/plain; version=0.0.4; charset=utf-8");
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        expect_sample(reply.body, samples[i]);
    }
    double remaining_s =
        value_of(reply.body, "gavel_lease_remaining_seconds{election=\"billing\"}");
    assert_true(remaining_s > 8 && remaining_s <= 10);
    char build[256];
    snprintf(build, sizeof build, "gavel_build_info{version=\"%s\",revision=\"%s\"} 1",
             build_version(), build_revision());
    expect_sample(reply.body, build);
    /* What never happened has no sample, what is no HTTP code no listener. */
    assert_null(strstr(reply.body, "timestamp_seconds{election=\"mail\"}"));
    assert_null(strstr(reply.body, "listener=\"http\",code=\"ok\""));
    reply_free(&reply);
    assert_int_equal(fixture->entries[0].handouts.until_ns, 0);
}

/* A leader whose lease has run out is none, whatever was published. */
static void test_metrics_look_at_the_clock(void **state) {
    struct health_fixture *fixture = *state;
    health_set_leader(&fixture->entries[0], -1);
    size_t length = 0;
    char *page = metrics_text(&fixture->board, &fixture->counters, &fixture->store, &length);
    assert_int_equal(length, strlen(page));
    expect_sample(page, "gavel_leader{election=\"billing\"} 0");
    expect_sample(page, "gavel_state{election=\"billing\",state=\"unknown\"} 1");
    expect_sample(page, "gavel_state{election=\"billing\",state=\"leader\"} 0");
    expect_sample(page, "gavel_fencing_token{election=\"billing\"} 0");
    free(page);
}

static void test_process_metrics(void **state) {
    struct health_fixture *fixture = *state;
    size_t length = 0;
    char *page = metrics_text(&fixture->board, &fixture->counters, &fixture->store, &length);
    double now_s = (double)time(NULL);
    double start_s = value_of(page, "process_start_time_seconds");
    assert_true(start_s > now_s - 3600 && start_s < now_s + 5);
    assert_true(value_of(page, "process_resident_memory_bytes") > 100e3);
    assert_true(value_of(page, "process_virtual_memory_bytes") >
                value_of(page, "process_resident_memory_bytes"));
    assert_true(value_of(page, "process_max_fds") >= value_of(page, "process_open_fds"));
    double files = value_of(page, "process_open_fds");
    int extra = dup(0);
    free(page);
    page = metrics_text(&fixture->board, &fixture->counters, &fixture->store, &length);
    assert_true(value_of(page, "process_open_fds") == files + 1);
    assert_true(value_of(page, "process_cpu_seconds_total") >= 0);
    close(extra);
    free(page);
}

static void check_with_promtool(const char *page, size_t length) {
    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        print_message("promtool is not installed\n");
        skip();
    }
    char path[] = "/tmp/gavel-metrics-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, page, length), (ssize_t)length);
    close(fd);
    char command[128];
    snprintf(command, sizeof command,
             "out=$(promtool check metrics <%s 2>&1); s=$?; "
             "echo \"$out\"; [ $s = 0 ] && [ -z \"$out\" ]",
             path);
    int status = system(command);
    unlink(path);
    assert_int_equal(status, 0);
}

static void test_promtool(void **state) {
    struct health_fixture *fixture = *state;
    fixture->board.count = 2;
    health_set_leader(&fixture->entries[0], 10 * NS_PER_S);
    fill_counters(fixture);
    size_t length = 0;
    char *page = metrics_text(&fixture->board, &fixture->counters, &fixture->store, &length);
    check_with_promtool(page, length);
    free(page);
}

/* Many elections make a long page, which arrives whole. */
static void test_many_elections(void **state) {
    struct health_fixture *fixture = *state;
    static struct board_entry entries[MANY];
    static struct election_counters counters[MANY];
    static char names[MANY][8];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "e%d", i);
        entries[i].name = names[i];
        counters_transition(&counters[i], STATE_FOLLOWER, REASON_HELD_BY_OTHER);
        health_set_leader(&entries[i], 10 * NS_PER_S);
    }
    fixture->board.entries = entries;
    fixture->board.count = MANY;
    fixture->counters.elections = counters;
    struct reply reply;
    health_ask(fixture, "GET /metrics HTTP/1.1" END, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(reply.length > 500000);
    expect_sample(reply.body, "gavel_leader{election=\"e999\"} 1");
    assert_non_null(strstr(reply.body, "gavel_build_info"));
    reply_free(&reply);
    health_expect(fixture, "GET /readyz?verbose HTTP/1.1" END, 503, NULL);
    for (int i = 0; i < MANY; i++) {
        counters_finish(&counters[i]);
    }
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, health_setup_fixture, health_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_metrics),         TEST(test_metrics_look_at_the_clock),
        TEST(test_process_metrics), TEST(test_promtool),
        TEST(test_many_elections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
