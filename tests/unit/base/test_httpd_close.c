#include "base/log.h"
#include "httpd_kit.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void test_reply_under_way_ends_before_close(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int idle = httpd_connect(fixture);
    int fd = httpd_connect(fixture);
    assert_true(client_send(&fixture->loop, fd, ASK_BIG, strlen(ASK_BIG)));
    assert_true(client_run_until(&fixture->loop, httpd_has_asked, fixture));
    uint16_t port = httpd_port(fixture->httpd);
    httpd_stop(fixture);
    assert_false(fixture->closed);
    struct reply reply;
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.length, BIG_BYTES);
    reply_free(&reply);
    assert_true(client_run_until(&fixture->loop, httpd_is_closed, fixture));
    /* and nobody new was let in */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(late, (const struct sockaddr *)&address, sizeof address), -1);
    close(late);
    close(idle);
    close(fd);
}

/* Those that are not being answered do not hold up the end at all. */
static void test_close_with_waiting_connections(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = httpd_connect(fixture);
    }
    assert_true(client_send(&fixture->loop, fds[1], ASK, 20));
    httpd_expect_answer_on(fixture, fds[2]);
    httpd_stop(fixture);
    for (int i = 0; i < 10; i++) {
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    assert_true(fixture->closed);
    for (int i = 0; i < 3; i++) {
        assert_true(client_wait_closed(&fixture->loop, fds[i]));
        close(fds[i]);
    }
}

/* A peer that does not take its reply cannot hold up the end. */
static void test_close_does_not_wait_for_ever(void **state) {
    struct httpd_fixture *fixture = *state;
    httpd_start(fixture);
    int fd = httpd_connect(fixture);
    assert_true(client_send(&fixture->loop, fd, ASK_BIG, strlen(ASK_BIG)));
    assert_true(client_run_until(&fixture->loop, httpd_has_asked, fixture));
    httpd_stop(fixture);
    assert_true(client_run_until(&fixture->loop, httpd_is_closed, fixture));
    close(fd);
}

static void test_close_from_the_handler(void **state) {
    struct httpd_fixture *fixture = *state;
    fixture->close_in_handler = true;
    httpd_start(fixture);
    struct reply reply;
    client_ask(&fixture->loop, "127.0.0.1", httpd_port(fixture->httpd), ASK, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Connection"), "close");
    reply_free(&reply);
    assert_true(client_run_until(&fixture->loop, httpd_is_closed, fixture));
}

int main(void) {
    log_setup(true, LOG_ERROR);
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, httpd_setup_fixture, httpd_teardown_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_reply_under_way_ends_before_close),
        TEST(test_close_with_waiting_connections),
        TEST(test_close_does_not_wait_for_ever),
        TEST(test_close_from_the_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
