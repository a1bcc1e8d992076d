#ifndef GAVEL_TESTS_REDIS_STORE_KIT_H
#define GAVEL_TESTS_REDIS_STORE_KIT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis_server.h"
#include "store/redis/reader.h"
#include "store/redis/redis.h"

#include <dirent.h>
#include <uv.h>

/*
 * A loop with one Redis store on it, and a peer that plays a Redis server by a script of the
 * test's, in the same loop.
 */
#define SHOP_ELECTIONS 3
#define SHOP_TIMEOUT_NS (2 * NS_PER_S)
#define PEER_CONNECTIONS 64

struct shop {
    uv_loop_t loop;
    uv_timer_t timer;
    bool late;
    char url[256];
    struct store *store;
    struct store_setup setup;
    struct store_status status;
    struct store_secrets secrets;
    struct store_event last[SHOP_ELECTIONS];
    unsigned answers[SHOP_ELECTIONS];
    unsigned wakes;
    bool wake_clean;
    unsigned char wake_nonce[NONCE_BYTES];
    bool closed;
};

static const char *const shop_names[SHOP_ELECTIONS] = {"one", "two", "three"};

static inline void shop_on_event(void *context, const struct store_event *event) {
    struct shop *shop = context;
    assert_false(shop->closed);
    assert_true(event->election < SHOP_ELECTIONS);
    if (event->type == STORE_WAKE) {
        shop->wakes++;
        shop->wake_clean = event->clean;
        memcpy(shop->wake_nonce, event->nonce, NONCE_BYTES);
        return;
    }
    shop->last[event->election] = *event;
    shop->answers[event->election]++;
    if (event->reply.outcome == OUTCOME_UNSURE) {
        assert_string_not_equal(event->text, "");
        assert_string_not_equal(shop->status.problem, "");
    }
}

static inline void shop_on_timer(uv_timer_t *timer) {
    struct shop *shop = timer->data;
    shop->late = true;
}

static inline void shop_init(struct shop *shop) {
    memset(shop, 0, sizeof *shop);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&shop->loop), 0);
    uv_timer_init(&shop->loop, &shop->timer);
    shop->timer.data = shop;
    shop->setup = (struct store_setup){.loop = &shop->loop,
                                       .url = shop->url,
                                       .namespace_ = "ns",
                                       .identity = "pod-a",
                                       .elections = shop_names,
                                       .election_count = SHOP_ELECTIONS,
                                       .ttl_ns = 10 * NS_PER_S,
                                       .margin_ns = 2 * NS_PER_S,
                                       .secrets = &shop->secrets,
                                       .status = &shop->status,
                                       .on_event = shop_on_event,
                                       .context = shop};
}

static inline void shop_open(struct shop *shop) {
    struct error error = {""};
    shop->store = redis_store_ops.open(&shop->setup, &error);
    if (shop->store == NULL) {
        fail_msg("%s", error.text);
    }
}

/* Turns the loop for a time, or until *count reaches `until`. */
static inline void shop_turn(struct shop *shop, int64_t time_ns, const unsigned *count,
                             unsigned until) {
    shop->late = false;
    uv_update_time(&shop->loop);
    uv_timer_start(&shop->timer, shop_on_timer, (uint64_t)(time_ns / NS_PER_MS), 0);
    while (!shop->late && (count == NULL || *count < until)) {
        uv_run(&shop->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&shop->timer);
}

static inline struct store_request shop_request(size_t election, unsigned char nonce) {
    struct store_request request = {.election = election,
                                    .take = true,
                                    .wait_ns = 10 * NS_PER_S,
                                    .timeout_ns = SHOP_TIMEOUT_NS};
    memset(request.nonce, nonce, sizeof request.nonce);
    return request;
}

static inline void shop_issue(struct shop *shop, enum store_event_type type,
                              const struct store_request *request) {
    unsigned before = shop->answers[request->election];
    if (type == STORE_ACQUIRED) {
        redis_store_ops.acquire(shop->store, request);
    } else if (type == STORE_RENEWED) {
        redis_store_ops.renew(shop->store, request);
    } else {
        redis_store_ops.release(shop->store, request);
    }
    assert_int_equal(shop->answers[request->election], before); /* never from inside the call */
}

static inline const struct store_event *shop_do(struct shop *shop, enum store_event_type type,
                                                const struct store_request *request) {
    size_t election = request->election;
    unsigned before = shop->answers[election];
    shop_issue(shop, type, request);
    shop_turn(shop, request->timeout_ns + 3 * NS_PER_S, &shop->answers[election], before + 1);
    assert_int_equal(shop->answers[election], before + 1);
    assert_int_equal(shop->last[election].type, type);
    return &shop->last[election];
}

static inline const struct store_event *shop_expect(struct shop *shop, enum store_event_type type,
                                                    const struct store_request *request,
                                                    enum outcome outcome) {
    const struct store_event *event = shop_do(shop, type, request);
    if (event->reply.outcome != outcome) {
        fail_msg("outcome %d: %s", (int)event->reply.outcome, event->text);
    }
    return event;
}

/* Repeats an acquire until it is answered; the time that took. */
static inline int64_t shop_until_yes(struct shop *shop, size_t election) {
    int64_t start_ns = clock_now().boot_ns;
    struct store_request request = shop_request(election, 1);
    while (shop_do(shop, STORE_ACQUIRED, &request)->reply.outcome != OUTCOME_YES) {
        assert_true(clock_now().boot_ns - start_ns < 10 * NS_PER_S);
        shop_turn(shop, 20 * NS_PER_MS, NULL, 0);
    }
    return clock_now().boot_ns - start_ns;
}

static inline void shop_on_closed(void *context) {
    struct shop *shop = context;
    assert_false(shop->closed);
    shop->closed = true;
}

static inline void shop_close(struct shop *shop) {
    redis_store_ops.close(shop->store, shop_on_closed, shop);
    assert_false(shop->closed);
    int64_t start_ns = clock_now().boot_ns;
    while (!shop->closed && clock_now().boot_ns - start_ns < 20 * NS_PER_S) {
        uv_run(&shop->loop, UV_RUN_ONCE);
    }
    assert_true(shop->closed);
    shop->store = NULL;
    shop->closed = false;
}

/* Nothing may be left on the loop. */
static inline void shop_finish(struct shop *shop) {
    uv_close((uv_handle_t *)&shop->timer, NULL);
    uv_run(&shop->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&shop->loop), 0);
}

static inline unsigned shop_open_files(void) {
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

struct peer;

struct peer_connection {
    uv_tcp_t tcp;
    struct peer *peer;
    struct redis_reader reader;
    char buffer[16384];
};

struct peer {
    uv_tcp_t listener;
    unsigned port;
    struct peer_connection *connections[PEER_CONNECTIONS];
    unsigned accepted;
    unsigned scripts; /* EVAL and EVALSHA that came */
    unsigned auths;
    unsigned subscribes;
    unsigned scripts_before_subscribe;
    const char *answer;   /* to scripts; NULL: silence */
    const char *auth;     /* to AUTH */
    const char *role;     /* to ROLE */
    const char *greeting; /* said on connecting; NULL: nothing */
    bool mute;            /* answers nothing at all */
    bool mute_subscribe;
    bool hang_up; /* closes when a script comes, after the answer if there is one */
    /* Sees each request first; true: it has dealt with it. NULL: none. */
    bool (*before)(struct peer_connection *connection, const redisReply *request);
    struct shop *shop;
};

#define PEER_MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
#define PEER_RENEWED                                                                               \
    "*6\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n$7\r\nrun:rep\r\n"    \
    "$1\r\n0\r\n"

static inline void peer_on_closed(uv_handle_t *handle) {
    struct peer_connection *connection = handle->data;
    redis_reader_finish(&connection->reader);
    free(connection);
}

static inline void peer_drop(struct peer_connection *connection) {
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (connection->peer->connections[i] == connection) {
            connection->peer->connections[i] = NULL;
        }
    }
    if (!uv_is_closing((uv_handle_t *)&connection->tcp)) {
        uv_close((uv_handle_t *)&connection->tcp, peer_on_closed);
    }
}

static inline void peer_say(struct peer_connection *connection, const char *bytes) {
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)strlen(bytes));
    int written = uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
    assert_true(written < 0 || (size_t)written == strlen(bytes));
}

static inline void peer_confirm(struct peer_connection *connection, const redisReply *request) {
    for (size_t i = 1; i < request->elements; i++) {
        char text[512];
        snprintf(text, sizeof text, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:%zu\r\n",
                 request->element[i]->len, request->element[i]->str, i);
        peer_say(connection, text);
    }
}

static inline void peer_on_script(struct peer_connection *connection) {
    struct peer *peer = connection->peer;
    peer->scripts++;
    peer->scripts_before_subscribe += peer->subscribes == 0;
    if (peer->answer != NULL) {
        peer_say(connection, peer->answer);
    }
    if (peer->hang_up) {
        peer_drop(connection);
    }
}

static inline void peer_on_request(struct peer_connection *connection, const redisReply *request) {
    struct peer *peer = connection->peer;
    const char *name = request->element[0]->str;
    peer->auths += strcmp(name, "AUTH") == 0;
    peer->subscribes += strcmp(name, "SUBSCRIBE") == 0;
    if (peer->mute || (peer->before != NULL && peer->before(connection, request))) {
        return;
    }
    if (strncmp(name, "EVAL", 4) == 0) {
        peer_on_script(connection);
    } else if (strcmp(name, "SUBSCRIBE") == 0) {
        if (!peer->mute_subscribe) {
            peer_confirm(connection, request);
        }
    } else if (strcmp(name, "ROLE") == 0) {
        peer_say(connection, peer->role != NULL ? peer->role : PEER_MASTER);
    } else if (strcmp(name, "AUTH") == 0) {
        peer_say(connection, peer->auth != NULL ? peer->auth : "+OK\r\n");
    } else if (strcmp(name, "INFO") == 0) {
        peer_say(connection, "$0\r\n\r\n");
    } else {
        peer_say(connection, "+OK\r\n");
    }
}

static inline void peer_on_allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer) {
    struct peer_connection *connection = handle->data;
    (void)wanted;
    *buffer = uv_buf_init(connection->buffer, sizeof connection->buffer);
}

static inline void peer_on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    struct peer_connection *connection = stream->data;
    redisReply *request = NULL;
    if (size < 0) {
        peer_drop(connection);
        return;
    }
    redis_reader_feed(&connection->reader, buffer->base, (size_t)size);
    while (!uv_is_closing((uv_handle_t *)stream) &&
           redis_reader_next(&connection->reader, &request) == REDIS_READER_REPLY) {
        peer_on_request(connection, request);
        freeReplyObject(request);
    }
}

static inline void peer_on_connection(uv_stream_t *listener, int status) {
    struct peer *peer = listener->data;
    assert_int_equal(status, 0);
    struct peer_connection *connection = calloc(1, sizeof *connection);
    assert_non_null(connection);
    connection->peer = peer;
    redis_reader_init(&connection->reader);
    uv_tcp_init(listener->loop, &connection->tcp);
    connection->tcp.data = connection;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&connection->tcp), 0);
    peer->accepted++;
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] == NULL) {
            peer->connections[i] = connection;
            break;
        }
    }
    if (peer->greeting != NULL) {
        peer_say(connection, peer->greeting);
    }
    uv_read_start((uv_stream_t *)&connection->tcp, peer_on_allocate, peer_on_read);
}

static inline void peer_start(struct peer *peer, struct shop *shop) {
    struct sockaddr_storage address;
    int size = sizeof address;
    memset(peer, 0, sizeof *peer);
    peer->shop = shop;
    peer->answer = PEER_RENEWED;
    uv_tcp_init(&shop->loop, &peer->listener);
    peer->listener.data = peer;
    struct sockaddr_in any;
    uv_ip4_addr("127.0.0.1", 0, &any);
    assert_int_equal(uv_tcp_bind(&peer->listener, (struct sockaddr *)&any, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&peer->listener, 128, peer_on_connection), 0);
    uv_tcp_getsockname(&peer->listener, (struct sockaddr *)&address, &size);
    peer->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    snprintf(shop->url, sizeof shop->url, "redis://127.0.0.1:%u", peer->port);
}

static inline void peer_hang_up(struct peer *peer) {
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_drop(peer->connections[i]);
        }
    }
}

static inline void peer_stop(struct peer *peer) {
    peer_hang_up(peer);
    uv_close((uv_handle_t *)&peer->listener, NULL);
}

/* A peer and a store that talks to it, for each test. */
static inline int peer_test_begin(void **state) {
    static struct {
        struct shop shop;
        struct peer peer;
    } all;
    shop_init(&all.shop);
    peer_start(&all.peer, &all.shop);
    shop_open(&all.shop);
    *state = &all.peer;
    return 0;
}

static inline int peer_test_end(void **state) {
    struct peer *peer = *state;
    if (peer->shop->store != NULL) {
        shop_close(peer->shop);
    }
    peer_stop(peer);
    shop_finish(peer->shop);
    return 0;
}

static inline void peer_renew_until_yes(struct peer *peer) {
    struct store_request request = shop_request(0, 1);
    int64_t start_ns = clock_now().boot_ns;
    while (shop_do(peer->shop, STORE_RENEWED, &request)->reply.outcome != OUTCOME_YES) {
        assert_true(clock_now().boot_ns - start_ns < 5 * NS_PER_S);
    }
}

#define PEER_TEST(function)                                                                        \
    cmocka_unit_test_setup_teardown((function), peer_test_begin, peer_test_end)

static inline const struct store_event *peer_renew(struct peer *peer, enum outcome outcome) {
    struct store_request request = shop_request(0, 1);
    return shop_expect(peer->shop, STORE_RENEWED, &request, outcome);
}

#endif
