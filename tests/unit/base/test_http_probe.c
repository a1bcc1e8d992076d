#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/http_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A check of the application: what counts as an answer, and that each request has one result. */

static int status_of(const char *text) {
    return http_status_parse(text, strlen(text));
}

static void status_lines(void **state) {
    (void)state;
    assert_int_equal(status_of("HTTP/1.1 200 OK\r\n"), 200);
    assert_int_equal(status_of("HTTP/1.0 503\r\n"), 503);
    assert_int_equal(status_of("HTTP/1.1 204\n"), 204);
    assert_int_equal(status_of(""), 0);
    assert_int_equal(status_of("HTT"), 0);
    assert_int_equal(status_of("HTTP/1.1 20"), 0);
    assert_int_equal(status_of("HTTP/1.1 200"), 0);
    assert_int_equal(status_of("HTTP/2 200 OK\r\n"), -1);
    assert_int_equal(status_of("SSH-2.0-x\r\n"), -1);
    assert_int_equal(status_of("HTTP/1.1 2000\r\n"), -1);
    assert_int_equal(status_of("HTTP/1.1 abc \r\n"), -1);
    assert_int_equal(status_of("HTTP/1.1\n"), -1);
}

static void targets(void **state) {
    (void)state;
    struct http_target target;
    struct error error;
    assert_true(http_target_parse("http://localhost:8080/a?b", &target, &error));
    assert_true(target.v4 && target.v6);
    assert_int_equal(target.port, 8080);
    assert_string_equal(target.path, "/a?b");
    assert_string_equal(target.host, "localhost:8080");
    assert_true(http_target_parse("http://[::1]", &target, &error));
    assert_true(target.v6 && !target.v4);
    assert_int_equal(target.port, 80);
    assert_string_equal(target.path, "/");
    assert_false(http_target_parse("http://192.168.0.1/", &target, &error));
    assert_non_null(strstr(error.text, "http://localhost:8080/healthz"));
}

struct outcome_count {
    unsigned well, unwell;
};

static void on_result(void *context, bool well, const char *why) {
    struct outcome_count *count = context;
    assert_non_null(why);
    count->well += well;
    count->unwell += !well;
}

/* Answers with `answer` (NULL: nothing) until there are `most` results. */
static struct outcome_count probe(const char *answer, unsigned most, bool listens) {
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    if (listens) {
        assert_int_equal(listen(listener, 8), 0);
    }
    struct http_target target = {.v4 = true,
                                 .host = "localhost",
                                 .v4_address = "127.0.0.1",
                                 .path = "/x",
                                 .port = ntohs(address.sin_port)};
    struct outcome_count count = {0, 0};
    struct http_probe *probe = http_probe_create(&loop, &target, 5, 200, on_result, &count);
    while (count.well + count.unwell < most) {
        uv_run(&loop, UV_RUN_NOWAIT);
        int client = accept(listener, NULL, NULL);
        if (client >= 0 && answer != NULL) {
            assert_int_equal(write(client, answer, strlen(answer)), (ssize_t)strlen(answer));
            close(client);
        }
    }
    http_probe_close(probe);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(listener);
    return count;
}

static void an_answer_counts_once(void **state) {
    (void)state;
    assert_int_equal(probe("HTTP/1.1 200 OK\r\n\r\n", 3, true).well, 3);
    assert_int_equal(probe("HTTP/1.1 302 Found\r\n\r\n", 1, true).well, 1);
    assert_int_equal(probe("HTTP/1.1 404 No\r\n\r\n", 2, true).unwell, 2);
    assert_int_equal(probe("nonsense\r\n", 1, true).unwell, 1);
    assert_int_equal(probe("", 1, true).unwell, 1);
}

static void silence_and_refusal_are_no(void **state) {
    (void)state;
    assert_int_equal(probe(NULL, 2, true).unwell, 2);
    assert_int_equal(probe(NULL, 2, false).unwell, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_lines),
        cmocka_unit_test(targets),
        cmocka_unit_test(an_answer_counts_once),
        cmocka_unit_test(silence_and_refusal_are_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
