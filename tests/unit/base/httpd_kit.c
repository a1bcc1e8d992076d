#include "httpd_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void on_closed(void *context) {
    struct httpd_fixture *fixture = context;
    fixture->closed = true;
}

bool httpd_is_closed(void *context) {
    return ((struct httpd_fixture *)context)->closed;
}

static void handle(void *context, const struct httpd_request *request, struct httpd_reply *reply) {
    struct httpd_fixture *fixture = context;
    fixture->asked++;
    fixture->last = *request;
    snprintf(fixture->last_path, sizeof fixture->last_path, "%s", request->path);
    snprintf(fixture->last_query, sizeof fixture->last_query, "%s",
             request->query != NULL ? request->query : "");
    reply->status = 200;
    if (strcmp(request->path, "/big") == 0) {
        reply->body = calloc(1, BIG_BYTES);
        reply->length = BIG_BYTES;
        return;
    }
    httpd_reply_text(reply, "text/plain", "hello");
    if (fixture->close_in_handler) {
        httpd_stop(fixture);
    }
}

void httpd_start(struct httpd_fixture *fixture) {
    struct error error = {.text = ""};
    fixture->httpd = httpd_create(&fixture->setup, &error);
    if (fixture->httpd == NULL) {
        fail_msg("%s", error.text);
    }
}

int httpd_setup_fixture(void **state) {
    struct httpd_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    fixture->setup = (struct httpd_setup){
        .loop = &fixture->loop,
        .listener = "test",
        .option = "--test",
        .host = "127.0.0.1",
        .connection_limit = LEAST_LIMIT,
        .request_ms = 60000,
        .idle_ms = 60000,
        .handle = handle,
        .context = fixture,
    };
    *state = fixture;
    return 0;
}

void httpd_stop(struct httpd_fixture *fixture) {
    httpd_close(fixture->httpd, on_closed, fixture);
    fixture->httpd = NULL;
}

/* Whatever a test left open, closing ends it, and nothing stays on the loop. */
int httpd_teardown_fixture(void **state) {
    struct httpd_fixture *fixture = *state;
    if (fixture->httpd != NULL) {
        httpd_stop(fixture);
        assert_true(client_run_until(&fixture->loop, httpd_is_closed, fixture));
    }
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
    return 0;
}

bool httpd_has_asked(void *context) {
    return ((struct httpd_fixture *)context)->asked > 0;
}

int httpd_connect(struct httpd_fixture *fixture) {
    return client_connect("127.0.0.1", httpd_port(fixture->httpd));
}

void httpd_expect_answer_on(struct httpd_fixture *fixture, int fd) {
    struct reply reply;
    assert_true(client_send(&fixture->loop, fd, ASK, strlen(ASK)));
    client_receive(&fixture->loop, fd, false, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "hello");
    reply_free(&reply);
}

void httpd_expect_answer(struct httpd_fixture *fixture) {
    int fd = httpd_connect(fixture);
    httpd_expect_answer_on(fixture, fd);
    close(fd);
}
