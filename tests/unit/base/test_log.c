#include "base/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Each test has a stderr of its own: a socket that keeps the bounds of writes, so that what is
 * received at once is what one write(2) gave. */
struct fixture {
    int saved;
    int ends[2]; /* 0: the test's, 1: where lines go */
    char line[2 * PIPE_BUF];
};

static void use_stderr(struct fixture *fixture, bool json, enum log_level least) {
    assert_true(dup2(fixture->ends[1], STDERR_FILENO) >= 0);
    log_setup(json, least);
}

static int setup(void **state) {
    static struct fixture fixture;
    fixture.saved = dup(STDERR_FILENO);
    *state = &fixture;
    return fixture.saved < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fixture.ends) != 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    (void)dup2(fixture->saved, STDERR_FILENO);
    (void)close(fixture->saved);
    (void)close(fixture->ends[0]);
    (void)close(fixture->ends[1]);
    log_setup(true, LOG_INFO);
    return 0;
}

/* The next line, without its end; NULL: none was written. */
static const char *take(struct fixture *fixture) {
    ssize_t got = recv(fixture->ends[0], fixture->line, sizeof fixture->line, MSG_DONTWAIT);
    if (got <= 0) {
        return NULL;
    }
    assert_true(got <= PIPE_BUF);
    assert_int_equal(fixture->line[got - 1], '\n');
    fixture->line[got - 1] = '\0';
    assert_null(strchr(fixture->line, '\n'));
    return fixture->line;
}

static json_t *take_json(struct fixture *fixture) {
    const char *line = take(fixture);
    assert_non_null(line);
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(object);
    return object;
}

static bool matches(const char *text, const char *pattern) {
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return match;
}

static void a_line_of_json(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_INFO);
    log_event(LOG_WARN, "listening", LOG_TEXT("address", "127.0.0.1"), LOG_NUMBER("port", 4040),
              LOG_NUMBER("least", INT64_MIN));
    const char *line = take(fixture);
    assert_true(matches(line,
                        "^\\{\"time\":\"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                        "\\.[0-9]{3}Z\",\"level\":\"warn\",\"event\":\"listening\","
                        "\"address\":\"127\\.0\\.0\\.1\",\"port\":4040,"
                        "\"least\":-9223372036854775808\\}$"));
    log_event(LOG_ERROR, "bare");
    assert_true(matches(take(fixture), ",\"level\":\"error\",\"event\":\"bare\"\\}$"));
}

static void a_line_for_people(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, false, LOG_INFO);
    log_event(LOG_INFO, "listening", LOG_TEXT("address", "::1"), LOG_NUMBER("port", 4040),
              LOG_TEXT("why", "two words"), LOG_TEXT("none", ""), LOG_TEXT("equal", "a=b"),
              LOG_TEXT("evil", "\x1B[2J"));
    assert_true(matches(take(fixture), "^20[^ ]*Z INFO  listening address=::1 port=4040 "
                                       "why=\"two words\" none=\"\" equal=\"a=b\" "
                                       "evil=\"\\\\u001b\\[2J\"$"));
}

static void any_bytes_make_valid_json(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_INFO);
    for (int first = 1; first < 256; first++) {
        const char text[] = {(char)first, (char)(first ^ 0x55), '"', (char)first, '\0'};
        log_event(LOG_INFO, text, LOG_TEXT("text", text));
        json_t *object = take_json(fixture);
        const char *decoded = json_string_value(json_object_get(object, "text"));
        if (first < 0x80 && first != 0x55) {
            assert_int_equal(decoded[0], first);
        }
        json_decref(object);
    }
}

static void long_values_are_cut(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_INFO);
    char text[20000];
    memset(text, '\x01', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_event(LOG_INFO, "long", LOG_TEXT("text", text), LOG_NUMBER("after", 1));
    json_t *object = take_json(fixture);
    const char *value = json_string_value(json_object_get(object, "text"));
    assert_true(strlen(value) > 100);
    assert_string_equal(value + strlen(value) - 3, "...");
    assert_int_equal(json_integer_value(json_object_get(object, "after")), 1);
    json_decref(object);
}

static void fields_that_do_not_fit_are_counted(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_INFO);
    char text[1001];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_event(LOG_INFO, "many", LOG_TEXT("a", text), LOG_TEXT("b", text), LOG_TEXT("c", text),
              LOG_TEXT("d", text), LOG_TEXT("e", text), LOG_NUMBER("last", 7));
    json_t *object = take_json(fixture);
    assert_int_equal(json_integer_value(json_object_get(object, "fields_left_out")), 2);
    assert_int_equal(json_integer_value(json_object_get(object, "last")), 7);
    assert_int_equal(json_string_length(json_object_get(object, "c")), 1000);
    json_decref(object);
}

static void what_is_below_the_level_is_not_written(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_WARN);
    log_event(LOG_INFO, "quiet");
    assert_null(take(fixture));
    log_event(LOG_WARN, "loud");
    assert_non_null(take(fixture));
    use_stderr(fixture, true, LOG_DEBUG);
    log_event(LOG_DEBUG, "small");
    assert_true(matches(take(fixture), "\"level\":\"debug\""));
}

/* Fills stderr, then drains it; what was lost is told by the next line. */
static void lose_lines(void (*drain)(int fd), int reader) {
    uint64_t before = log_lost();
    int written = 0;
    while (log_lost() == before) {
        log_event(LOG_INFO, "filler", LOG_NUMBER("number", written));
        assert_true(++written < 100000);
    }
    log_event(LOG_INFO, "lost too");
    assert_int_equal(log_lost(), before + 2);
    drain(reader);
    log_event(LOG_INFO, "back");
}

static void drain_pipe(int fd) {
    char bytes[PIPE_BUF];
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (read(fd, bytes, sizeof bytes) > 0) {
    }
}

static void a_full_pipe_loses_lines_and_says_so(void **state) {
    struct fixture *fixture = *state;
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    assert_true(dup2(pipe_ends[1], STDERR_FILENO) >= 0);
    log_setup(true, LOG_INFO);
    lose_lines(drain_pipe, pipe_ends[0]);
    ssize_t got = read(pipe_ends[0], fixture->line, sizeof fixture->line - 1);
    assert_true(got > 0);
    fixture->line[got] = '\0';
    assert_true(matches(fixture->line, "^\\{[^\n]*\"event\":\"back\",\"lines_lost\":2\\}\n$"));
    /* Who shares the pipe with us must not find it changed. */
    assert_int_equal(fcntl(pipe_ends[1], F_GETFL) & O_NONBLOCK, 0);
    assert_true(dup2(fixture->saved, STDERR_FILENO) >= 0);
    log_setup(true, LOG_INFO);
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
}

static void drain_socket(int fd) {
    char bytes[PIPE_BUF];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void a_full_socket_loses_lines_and_says_so(void **state) {
    struct fixture *fixture = *state;
    use_stderr(fixture, true, LOG_INFO);
    lose_lines(drain_socket, fixture->ends[0]);
    json_t *object = take_json(fixture);
    assert_int_equal(json_integer_value(json_object_get(object, "lines_lost")), 2);
    json_decref(object);
    log_event(LOG_INFO, "later");
    assert_false(matches(take(fixture), "lines_lost"));
    assert_int_equal(fcntl(fixture->ends[1], F_GETFL) & O_NONBLOCK, 0);
}

static void a_closed_stderr_is_survived(void **state) {
    struct fixture *fixture = *state;
    uint64_t before = log_lost();
    (void)close(STDERR_FILENO);
    log_setup(true, LOG_INFO);
    log_event(LOG_INFO, "nowhere");
    assert_int_equal(log_lost(), before + 1);
    use_stderr(fixture, true, LOG_INFO);
    log_event(LOG_INFO, "somewhere");
    assert_true(matches(take(fixture), "\"lines_lost\":1"));
}

static void a_limit_counts_what_it_holds_back(void **state) {
    (void)state;
    struct log_limit limit = {0};
    uint64_t suppressed = 99;
    assert_true(log_allow(&limit, 3600000, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_false(log_allow(&limit, 3600000, &suppressed));
    assert_false(log_allow(&limit, 3600000, &suppressed));
    limit.next_ns = 0; /* an hour later */
    assert_true(log_allow(&limit, 3600000, &suppressed));
    assert_int_equal(suppressed, 2);
    assert_false(log_allow(&limit, 3600000, &suppressed));
}

static void levels_have_names(void **state) {
    (void)state;
    assert_string_equal(log_level_name(LOG_DEBUG), "debug");
    assert_string_equal(log_level_name(LOG_ERROR), "error");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_of_json, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_for_people, setup, teardown),
        cmocka_unit_test_setup_teardown(any_bytes_make_valid_json, setup, teardown),
        cmocka_unit_test_setup_teardown(long_values_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_that_do_not_fit_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_below_the_level_is_not_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_pipe_loses_lines_and_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_socket_loses_lines_and_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_closed_stderr_is_survived, setup, teardown),
        cmocka_unit_test(a_limit_counts_what_it_holds_back),
        cmocka_unit_test(levels_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
