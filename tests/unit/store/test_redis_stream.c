/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/command.h"
#include "store/redis/stream.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMMANDS 3

struct desk {
    uv_loop_t loop;
    struct store_lives lives;
    struct redis_stream *stream;
    int listener;
    char heard[200];
    char ended[200];
};

static void on_open(void *context) {
    struct desk *desk = context;
    static const char *const ping[] = {"PING"};
    for (int i = 0; i < COMMANDS; i++) { /* the first meets a closed socket, the next ones know */
        struct redis_command command = redis_command(1, ping);
        assert_true(redis_stream_send(desk->stream, command.bytes, command.size));
    }
}

static void on_reply(void *context, const redisReply *reply) {
    struct desk *desk = context;
    snprintf(desk->heard, sizeof desk->heard, "%s", reply->str);
}

static void on_down(void *context, const char *why) {
    struct desk *desk = context;
    snprintf(desk->ended, sizeof desk->ended, "%s", why);
    redis_stream_close(desk->stream);
}

static const struct redis_stream_events events = {on_open, on_reply, on_down};

/* Connects to a server that says that, and has hung up before the loop turns. */
static void meet(struct desk *desk, const char *words) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const char *why = NULL;
    memset(desk, 0, sizeof *desk);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    desk->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(desk->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(desk->listener, 8), 0);
    assert_int_equal(getsockname(desk->listener, (struct sockaddr *)&address, &size), 0);

    desk->stream =
        redis_stream_tcp(&desk->loop, (const struct sockaddr *)&address, &desk->lives, &why);
    assert_non_null(desk->stream);
    redis_stream_own(desk->stream, &events, desk);
    int peer = accept(desk->listener, NULL, NULL);
    assert_int_equal(send(peer, words, strlen(words), 0), (ssize_t)strlen(words));
    close(peer);
    close(desk->listener);
    uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_int_equal(desk->lives.count, 0);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
}

static void last_words_are_heard(void **state) {
    (void)state;
    struct desk desk;
    meet(&desk, "-ERR max number of clients reached\r\n");
    assert_string_equal(desk.heard, "ERR max number of clients reached");
    assert_string_not_equal(desk.ended, "");
}

static void silence_is_told(void **state) {
    (void)state;
    struct desk desk;
    meet(&desk, "");
    assert_string_equal(desk.heard, "");
    assert_string_not_equal(desk.ended, ""); /* reading goes on to the end, and tells of it */
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_words_are_heard),
        cmocka_unit_test(silence_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
