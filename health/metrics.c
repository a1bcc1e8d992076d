#include "health/metrics.h"

#include "base/build.h"
#include "base/clock.h"
#include "base/memory.h"
#include "health/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One page in the making. */
struct page {
    FILE *out;
    const struct board *board;
    const struct counters *counters;
    const struct store_status *store;
    struct instant now;
    struct answer *answers; /* one for each election, all of one moment */
};

static const char *const op_names[COUNTER_OP_COUNT] = {
    [COUNTER_ACQUIRE] = "acquire", [COUNTER_RENEW] = "renew", [COUNTER_RELEASE] = "release"};
static const char *const result_names[RESULT_COUNT] = {
    [RESULT_YES] = "yes", [RESULT_NO] = "no", [RESULT_UNSURE] = "unsure"};

static void family(struct page *page, const char *name, const char *type, const char *help) {
    fprintf(page->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A family of one sample without labels. */
static void single(struct page *page, const char *name, const char *type, const char *help,
                   double value) {
    family(page, name, type, help);
    fprintf(page->out, "%s %.15g\n", name, value);
}

static double seconds_of(int64_t ns) {
    return (double)ns / (double)NS_PER_S;
}

/* One sample an election; election names need no escaping. */
static void each_election(struct page *page, const char *name, const char *label, const char *help,
                          double (*value)(const struct page *page, size_t election)) {
    family(page, name, "gauge", help);
    for (size_t i = 0; i < page->board->count; i++) {
        fprintf(page->out, "%s{%s=\"%s\"} %.15g\n", name, label, page->board->entries[i].name,
                value(page, i));
    }
}

static double leader_value(const struct page *page, size_t election) {
    return page->answers[election].leader;
}

static double token_value(const struct page *page, size_t election) {
    return (double)page->answers[election].token;
}

static double remaining_value(const struct page *page, size_t election) {
    return seconds_of(lease_remaining_ns(&page->board->entries[election].view.lease, page->now));
}

static void write_states(struct page *page) {
    family(page, "gavel_state", "gauge", "1 for the state that this replica is in, else 0.");
    for (size_t i = 0; i < page->board->count; i++) {
        for (int state = 0; state < STATE_COUNT; state++) {
            fprintf(page->out, "gavel_state{election=\"%s\",state=\"%s\"} %d\n",
                    page->board->entries[i].name, election_state_name((enum election_state)state),
                    (int)page->answers[i].state == state);
        }
    }
}

static void write_transitions(struct page *page) {
    family(page, "gavel_transitions_total", "counter",
           "Changes of state, by new state and reason.");
    for (size_t i = 0; i < page->board->count; i++) {
        const struct election_counters *counters = &page->counters->elections[i];
        for (size_t k = 0; k < counters->transition_count; k++) {
            const struct transition_counter *counter = &counters->transitions[k];
            fprintf(page->out,
                    "gavel_transitions_total{election=\"%s\",to=\"%s\",reason=\"%s\"} "
                    "%" PRIu64 "\n",
                    page->board->entries[i].name, election_state_name(counter->to),
                    election_reason_name(counter->reason), counter->count);
        }
    }
}

static void write_last_renewals(struct page *page) {
    family(page, "gavel_last_renewal_timestamp_seconds", "gauge",
           "When the store last confirmed the lock, by the wall clock; absent before the first.");
    for (size_t i = 0; i < page->board->count; i++) {
        int64_t real_ns = page->counters->elections[i].last_renewal_real_ns;
        if (real_ns != 0) {
            fprintf(page->out, "gavel_last_renewal_timestamp_seconds{election=\"%s\"} %.3f\n",
                    page->board->entries[i].name, seconds_of(real_ns));
        }
    }
}

static void write_elections(struct page *page) {
    each_election(page, "gavel_leader", "election", "1 while this replica leads.", leader_value);
    write_states(page);
    each_election(page, "gavel_fencing_token", "election",
                  "The fencing token of the present leadership; 0 unless this replica leads.",
                  token_value);
    each_election(page, "gavel_lease_remaining_seconds", "election",
                  "How long the lease is still good for; 0 without one.", remaining_value);
    write_transitions(page);
    write_last_renewals(page);
    each_election(page, "leader_election_master_status", "name",
                  "1 while this replica leads, under the name that client-go uses.", leader_value);
}

static void write_durations(struct page *page, enum counter_op op) {
    const struct histogram *histogram = &page->counters->store_durations[op];
    const char *name = "gavel_store_request_duration_seconds";
    uint64_t sum = 0;
    for (int i = 0; i < DURATION_BUCKETS; i++) {
        sum += histogram->buckets[i];
        fprintf(page->out, "%s_bucket{op=\"%s\",le=\"%g\"} %" PRIu64 "\n", name, op_names[op],
                duration_bounds_s[i], sum);
    }
    fprintf(page->out, "%s_bucket{op=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, op_names[op],
            histogram->count);
    fprintf(page->out, "%s_sum{op=\"%s\"} %.15g\n", name, op_names[op], histogram->sum_s);
    fprintf(page->out, "%s_count{op=\"%s\"} %" PRIu64 "\n", name, op_names[op], histogram->count);
}

static void write_store(struct page *page) {
    family(page, "gavel_store_requests_total", "counter",
           "Requests to the store, by operation and what it answered.");
    for (int op = 0; op < COUNTER_OP_COUNT; op++) {
        for (int result = 0; result < RESULT_COUNT; result++) {
            fprintf(page->out, "gavel_store_requests_total{op=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                    op_names[op], result_names[result], page->counters->store_requests[op][result]);
        }
    }
    family(page, "gavel_store_request_duration_seconds", "histogram",
           "Time from a request to its answer, or to giving up.");
    for (int op = 0; op < COUNTER_OP_COUNT; op++) {
        write_durations(page, (enum counter_op)op);
    }
    single(page, "gavel_store_up", "gauge", "1 if the store answered the last request.",
           page->store->up);
    single(page, "gavel_store_reconnects_total", "counter",
           "Connections to the store after the first.", (double)page->store->reconnects);
}

static void write_warnings(struct page *page) {
    uint32_t warnings = page->board->process_warnings;
    for (size_t i = 0; i < page->board->count; i++) {
        warnings |= page->board->entries[i].view.warnings;
    }
    family(page, "gavel_warning", "gauge", "1 while the warning holds for any election.");
    for (unsigned bit = 0; bit < WARNING_COUNT; bit++) {
        fprintf(page->out, "gavel_warning{code=\"%s\"} %u\n", warning_name(bit),
                warnings >> bit & 1U);
    }
}

/* The socket has codes of its own, HTTP has the rest. */
static bool listener_has_code(enum counter_listener listener, enum counter_code code) {
    bool of_socket = code == CODE_OK || code == CODE_ERROR;
    return of_socket == (listener == LISTENER_SOCKET);
}

static void write_attached(struct page *page) {
    family(page, "gavel_attached_apps", "gauge", "Applications that are attached: 0 or 1.");
    for (size_t i = 0; i < page->board->count; i++) {
        fprintf(page->out, "gavel_attached_apps{election=\"%s\"} %" PRIu64 "\n",
                page->board->entries[i].name, page->counters->elections[i].attached_apps);
    }
}

static void write_requests(struct page *page) {
    static const char *const names[LISTENER_COUNT] = {
        [LISTENER_HTTP] = "http", [LISTENER_HEALTH] = "health", [LISTENER_SOCKET] = "socket"};
    family(page, "gavel_api_requests_total", "counter", "Requests answered, by listener and code.");
    for (int cell = 0; cell < LISTENER_COUNT * CODE_COUNT; cell++) {
        enum counter_listener listener = (enum counter_listener)(cell / CODE_COUNT);
        enum counter_code code = (enum counter_code)(cell % CODE_COUNT);
        if (listener_has_code(listener, code)) {
            fprintf(page->out,
                    "gavel_api_requests_total{listener=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                    names[listener], counter_code_name(code),
                    page->counters->api_requests[listener][code]);
        }
    }
    single(page, "gavel_watchers", "gauge", "Connections that watch an election.",
           (double)(page->counters->watchers + page->counters->waiters));
    write_attached(page);
}

static void write_loop(struct page *page) {
    single(page, "gavel_loop_lag_seconds", "gauge", "How late the loop's last heartbeat came.",
           page->counters->loop_lag_s);
    single(page, "gavel_loop_stalls_total", "counter",
           "Times that the loop stood still for longer than the margin.",
           (double)page->counters->loop_stalls);
    family(page, "gavel_clock_steps_total", "counter",
           "Steps of a clock against the monotonic one.");
    fprintf(page->out,
            "gavel_clock_steps_total{clock=\"real\"} %" PRIu64 "\n"
            "gavel_clock_steps_total{clock=\"store\"} %" PRIu64 "\n",
            page->counters->clock_steps_real, page->store->clock_steps);
}

static void write_process(struct page *page) {
    struct process_usage usage;
    process_usage_read(&usage);
    if (usage.known) {
        single(page, "process_cpu_seconds_total", "counter", "Processor time used.", usage.cpu_s);
        single(page, "process_resident_memory_bytes", "gauge", "Memory in use.",
               usage.resident_bytes);
        single(page, "process_virtual_memory_bytes", "gauge", "Address space in use.",
               usage.virtual_bytes);
        single(page, "process_start_time_seconds", "gauge", "Start of the process since the epoch.",
               usage.start_time_s);
    }
    if (usage.open_files >= 0) {
        single(page, "process_open_fds", "gauge", "Open file descriptors.", usage.open_files);
    }
    if (usage.max_files >= 0) {
        single(page, "process_max_fds", "gauge", "Limit of open file descriptors.",
               usage.max_files);
    }
    family(page, "gavel_build_info", "gauge", "What this program was built from; always 1.");
    fprintf(page->out, "gavel_build_info{version=\"%s\",revision=\"%s\"} 1\n", build_version(),
            build_revision());
}

static void evaluate(struct page *page) {
    page->now = clock_now();
    page->answers = memory_zeroed(page->board->count, sizeof *page->answers);
    for (size_t i = 0; i < page->board->count; i++) {
        struct handouts scratch = page->board->entries[i].handouts;
        page->answers[i] = view_answer(&page->board->entries[i].view, page->now, &scratch);
    }
}

char *metrics_text(const struct board *board, const struct counters *counters,
                   const struct store_status *store, size_t *length) {
    struct page page = {.board = board, .counters = counters, .store = store};
    char *text = NULL;
    page.out = open_memstream(&text, length);
    if (page.out == NULL) {
        abort(); /* out of memory */
    }
    evaluate(&page);
    write_elections(&page);
    write_store(&page);
    write_warnings(&page);
    write_loop(&page);
    write_requests(&page);
    write_process(&page);
    free(page.answers);
    if (fclose(page.out) != 0) {
        abort(); /* out of memory */
    }
    return text;
}
