/* The store with a real server: what it lives through, and what it tells. */
#include "redis_store_kit.h"

struct all {
    struct shop shop;
    struct shop other;
    struct redis_server *server;
};

static int begin_all(void **state) {
    static struct all all;
    all.server = redis_server_start(NULL);
    if (all.server == NULL) {
        fprintf(stderr, "SKIPPED: redis-server cannot be started\n");
        exit(77);
    }
    *state = &all;
    return 0;
}

static int end_all(void **state) {
    struct all *all = *state;
    redis_server_stop(all->server);
    return 0;
}

static int begin(void **state) {
    struct all *all = *state;
    redis_server_run(all->server, "FLUSHALL");
    redis_server_run(all->server, "ACL SETUSER default on nopass ~* &* +@all");
    shop_init(&all->shop);
    snprintf(all->shop.url, sizeof all->shop.url, "redis://127.0.0.1:%u", all->server->port);
    return 0;
}

static int end(void **state) {
    struct all *all = *state;
    if (all->shop.store != NULL) {
        shop_close(&all->shop);
    }
    shop_finish(&all->shop);
    return 0;
}

#define STORE_TEST(function) cmocka_unit_test_setup_teardown((function), begin, end)

static const struct store_event *acquire(struct shop *shop, enum outcome outcome) {
    struct store_request request = shop_request(0, 1);
    return shop_expect(shop, STORE_ACQUIRED, &request, outcome);
}

static void life_of_a_lock(void **state) {
    struct all *all = *state;
    char space[256];
    shop_open(&all->shop);
    redis_store_ops.lock_space(all->shop.store, 0, space, sizeof space);
    assert_string_equal(space, "");
    struct store_request request = shop_request(0, 1);
    const struct store_event *event = acquire(&all->shop, OUTCOME_YES);
    request.token = event->reply.token;
    memcpy(request.server, event->reply.server, sizeof request.server);
    redis_store_ops.lock_space(all->shop.store, 0, space, sizeof space);
    assert_int_equal(strcspn(space, "/"), 40);
    assert_string_equal(space + 40, "/0/gavel:{ns/one}");
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    request.clean = true;
    shop_expect(&all->shop, STORE_RELEASED, &request, OUTCOME_YES);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_NO);
    assert_true(all->shop.status.up);
    assert_true(all->shop.status.reconnects == 0);
}

/* What was answered in time is waited for no longer: an idle process sleeps. */
static void answered_requests_leave_no_timer(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    struct store_request request = shop_request(0, 1);
    request.timeout_ns = 5 * NS_PER_S;
    shop_expect(&all->shop, STORE_ACQUIRED, &request, OUTCOME_YES);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    int64_t give_up_ns = clock_now().boot_ns + 4 * NS_PER_S;
    while (uv_backend_timeout(&all->shop.loop) <= 5000 && clock_now().boot_ns < give_up_ns) {
        shop_turn(&all->shop, 10 * NS_PER_MS, NULL, 0);
    }
    assert_in_range(uv_backend_timeout(&all->shop.loop), 5001, 10000); /* the subscriber's */
}

static void unix_sockets_and_databases(void **state) {
    struct all *all = *state;
    snprintf(all->shop.url, sizeof all->shop.url, "redis+unix://%s?db=7", all->server->socket);
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    redisContext *context = redis_server_connect(all->server);
    for (int database = 0; database < 16; database++) {
        redisReply *reply = redisCommand(context, "SELECT %d", database);
        freeReplyObject(reply);
        reply = redisCommand(context, "DBSIZE");
        assert_int_equal(reply->integer, database == 7 ? 2 : 0); /* the lease and the record */
        freeReplyObject(reply);
    }
    redisFree(context);
}

static void wrong_database_is_refused(void **state) {
    struct all *all = *state;
    snprintf(all->shop.url, sizeof all->shop.url, "redis://127.0.0.1:%u/99", all->server->port);
    shop_open(&all->shop);
    const struct store_event *event = acquire(&all->shop, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_non_null(strstr(event->text, "DB index is out of range"));
    redisReply *reply = redis_server_do(all->server, "DBSIZE");
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
}

static void refused_connection_and_recovery(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    redis_server_kill(all->server);
    for (int i = 0; i < 6; i++) { /* the pauses have grown to their longest */
        int64_t start_ns = clock_now().boot_ns;
        const struct store_event *event = acquire(&all->shop, OUTCOME_UNSURE);
        assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
        assert_non_null(strstr(event->text, "refused"));
        assert_true(event->reply.sent.boot_ns == 0);
        assert_true(clock_now().boot_ns - start_ns < 1200 * NS_PER_MS); /* not the whole timeout */
    }
    assert_false(all->shop.status.up);
    assert_true(redis_server_launch(all->server));
    assert_true(shop_until_yes(&all->shop, 0) < 1100 * NS_PER_MS);

    /* The pauses begin anew after a good connection. */
    redis_server_kill(all->server);
    int64_t killed_ns = clock_now().boot_ns;
    for (int i = 0; i < 5; i++) {
        acquire(&all->shop, OUTCOME_UNSURE);
    }
    assert_true(clock_now().boot_ns - killed_ns < NS_PER_S);
    assert_true(redis_server_launch(all->server));
}

/* This process was held up, not the server: its answer is there, and is taken. */
static void answers_survive_a_stalled_loop(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(0, 1);
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES); /* the script is known now */
    request.timeout_ns = 100 * NS_PER_MS;
    for (int i = 0; i < 3; i++) {
        unsigned before = all->shop.answers[0];
        shop_issue(&all->shop, STORE_RENEWED, &request);
        usleep(250000);
        shop_turn(&all->shop, NS_PER_S, &all->shop.answers[0], before + 1);
        assert_int_equal(all->shop.last[0].reply.outcome, OUTCOME_YES);
    }
}

static void restart_is_lived_through(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    struct store_event first = *acquire(&all->shop, OUTCOME_YES);
    redis_server_kill(all->server);
    shop_turn(&all->shop, 100 * NS_PER_MS, NULL, 0);
    assert_false(all->shop.status.up);
    assert_true(redis_server_launch(all->server));
    assert_true(shop_until_yes(&all->shop, 0) < 1100 * NS_PER_MS);
    const struct store_reply *reply = &all->shop.last[0].reply;
    assert_string_not_equal(reply->server, first.reply.server);
    assert_int_equal(reply->prior, PRIOR_NONE);
    assert_true(reply->token > first.reply.token);
    assert_true(all->shop.status.reconnects == 1);
}

static void passwords_and_users(void **state) {
    struct all *all = *state;
    redis_server_run(all->server, "ACL SETUSER gavel reset on >p@ss ~gavel:* &gavel:* +@all");
    snprintf(all->shop.url, sizeof all->shop.url, "redis://gavel:p%%40ss@127.0.0.1:%u",
             all->server->port);
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    shop_close(&all->shop);

    snprintf(all->shop.url, sizeof all->shop.url, "redis://gavel:wRoNg@127.0.0.1:%u",
             all->server->port);
    shop_open(&all->shop);
    const struct store_event *event = acquire(&all->shop, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_non_null(strstr(event->text, "WRONGPASS"));
    assert_null(strstr(event->text, "wRoNg"));
    all->shop.secrets.password = "p@ss"; /* read anew at the next connect, and wins */
    assert_true(shop_until_yes(&all->shop, 0) < 2500 * NS_PER_MS);
    all->shop.secrets.password = NULL;
}

static void password_that_nobody_wants(void **state) {
    struct all *all = *state;
    all->shop.secrets.password = "sEcReT";
    shop_open(&all->shop);
    const struct store_event *event = acquire(&all->shop, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "no password configured"));
    all->shop.secrets.password = NULL;
}

static void scripts_may_be_flushed(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    struct store_request request = shop_request(0, 1);
    for (int i = 0; i < 20; i++) {
        redis_server_run(all->server, "SCRIPT FLUSH");
        shop_expect(&all->shop, i % 2 == 0 ? STORE_ACQUIRED : STORE_RENEWED, &request, OUTCOME_YES);
    }
    redis_server_run(all->server, "SCRIPT FLUSH");
    shop_expect(&all->shop, STORE_RELEASED, &request, OUTCOME_YES);
    assert_true(all->shop.status.reconnects == 0);
}

static void only_eval_is_needed(void **state) {
    struct all *all = *state;
    redis_server_run(
        all->server,
        "ACL SETUSER narrow reset on nopass ~gavel:* +eval +get +pttl +set +pexpire +pexpireat "
        "+del +hmget +hset +time");
    snprintf(all->shop.url, sizeof all->shop.url, "redis://narrow@127.0.0.1:%u", all->server->port);
    shop_open(&all->shop);
    struct store_request request = shop_request(0, 1);
    int64_t start_ns = clock_now().boot_ns;
    shop_expect(&all->shop, STORE_ACQUIRED, &request, OUTCOME_YES);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    shop_expect(&all->shop, STORE_RELEASED, &request, OUTCOME_YES);
    assert_true(clock_now().boot_ns - start_ns < NS_PER_S); /* SUBSCRIBE is not waited for */
    assert_true(all->shop.status.reconnects == 0);
}

static void others_are_woken(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(1, 1);
    shop_init(&all->other);
    all->other.setup.loop = &all->shop.loop;
    memcpy(all->other.url, all->shop.url, sizeof all->other.url);
    shop_open(&all->shop);
    shop_open(&all->other);
    for (int clean = 0; clean <= 1; clean++) {
        struct store_request look = shop_request(1, 9);
        const struct store_reply *reply =
            &shop_expect(&all->shop, STORE_ACQUIRED, &request, OUTCOME_YES)->reply;
        request.token = reply->token;
        memcpy(request.server, reply->server, sizeof request.server);
        redis_store_ops.acquire(all->other.store, &look);
        shop_turn(&all->shop, 3 * NS_PER_S, &all->other.answers[1], (unsigned)clean + 1);
        assert_int_equal(all->other.last[1].reply.outcome, OUTCOME_NO);
        request.clean = clean != 0;
        shop_expect(&all->shop, STORE_RELEASED, &request, OUTCOME_YES);
        shop_turn(&all->shop, 3 * NS_PER_S, &all->other.wakes, (unsigned)clean + 1);
        assert_int_equal(all->other.wakes, clean + 1);
        assert_int_equal(all->other.wake_clean, clean);
    }
    redis_store_ops.close(all->other.store, shop_on_closed, &all->other);
    shop_turn(&all->shop, 100 * NS_PER_MS, NULL, 0);
    assert_true(all->other.closed);
    shop_finish(&all->other);
}

static void killed_clients_come_back(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    for (unsigned i = 1; i <= 50; i++) {
        redisReply *reply = redis_server_do(all->server, "CLIENT KILL TYPE normal SKIPME yes");
        freeReplyObject(reply);
        assert_true(shop_until_yes(&all->shop, 0) < NS_PER_S);
    }
    assert_true(all->shop.status.reconnects >= 50);
}

static void demotion_is_noticed(void **state) {
    struct all *all = *state;
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    redis_server_run(all->server, "REPLICAOF 127.0.0.1 1");
    for (int i = 0; i < 3; i++) {
        const struct store_event *event = acquire(&all->shop, OUTCOME_UNSURE);
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
        assert_non_null(strstr(event->text, "not a master"));
    }
    redis_server_run(all->server, "REPLICAOF NO ONE");
    assert_true(shop_until_yes(&all->shop, 0) < 1100 * NS_PER_MS);
}

static void evicting_servers_are_warned_of(void **state) {
    struct all *all = *state;
    redis_server_run(all->server, "CONFIG SET maxmemory 1gb");
    redis_server_run(all->server, "CONFIG SET maxmemory-policy allkeys-lru");
    shop_open(&all->shop);
    assert_int_equal(acquire(&all->shop, OUTCOME_YES)->reply.warnings, WARNING_EVICTION_POLICY);
    shop_close(&all->shop);
    redis_server_run(all->server, "CONFIG SET maxmemory-policy noeviction");
    shop_open(&all->shop);
    assert_int_equal(acquire(&all->shop, OUTCOME_YES)->reply.warnings, 0);
    shop_close(&all->shop);
    redis_server_run(all->server, "CONFIG SET maxmemory 0");
    redis_server_run(all->server, "CONFIG SET maxmemory-policy allkeys-lru");
    shop_open(&all->shop);
    assert_int_equal(acquire(&all->shop, OUTCOME_YES)->reply.warnings, 0);
}

static void foreign_values_are_told(void **state) {
    struct all *all = *state;
    redis_server_run(all->server, "SET gavel:{ns/one}:lease x");
    shop_open(&all->shop);
    const struct store_event *event = acquire(&all->shop, OUTCOME_NO);
    assert_int_equal(event->reply.reason, REASON_FOREIGN_VALUE);
    assert_non_null(strstr(event->text, "gavel:{ns/one}:lease"));
    assert_non_null(strstr(all->shop.status.problem, "gavel:{ns/one}:lease"));
    assert_true(all->shop.status.up);
    struct store_request other = shop_request(1, 1);
    shop_expect(&all->shop, STORE_ACQUIRED, &other, OUTCOME_YES);
    assert_string_not_equal(all->shop.status.problem, ""); /* it is not that election's trouble */
    redis_server_run(all->server, "DEL gavel:{ns/one}:lease");
    acquire(&all->shop, OUTCOME_YES);
    assert_string_equal(all->shop.status.problem, "");
}

static void busy_servers_are_waited_for(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(0, 1);
    shop_open(&all->shop);
    acquire(&all->shop, OUTCOME_YES);
    redis_server_run(all->server, "CONFIG SET busy-reply-threshold 50");
    redisContext *context = redis_server_connect(all->server);
    assert_int_equal(redisAppendCommand(context, "EVAL %s 0", "while true do end"), REDIS_OK);
    int done = 0;
    while (done == 0) {
        assert_int_equal(redisBufferWrite(context, &done), REDIS_OK);
    }
    shop_turn(&all->shop, 200 * NS_PER_MS, NULL, 0);
    const struct store_event *event =
        shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_non_null(strstr(event->text, "BUSY"));
    redis_server_run(all->server, "SCRIPT KILL");
    redisReply *killed = NULL; /* it ends a little later */
    assert_int_equal(redisGetReply(context, (void **)&killed), REDIS_OK);
    freeReplyObject(killed);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(all->shop.status.reconnects == 0);
    redisFree(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(life_of_a_lock),
        STORE_TEST(answered_requests_leave_no_timer),
        STORE_TEST(unix_sockets_and_databases),
        STORE_TEST(wrong_database_is_refused),
        STORE_TEST(refused_connection_and_recovery),
        STORE_TEST(answers_survive_a_stalled_loop),
        STORE_TEST(restart_is_lived_through),
        STORE_TEST(passwords_and_users),
        STORE_TEST(password_that_nobody_wants),
        STORE_TEST(scripts_may_be_flushed),
        STORE_TEST(only_eval_is_needed),
        STORE_TEST(others_are_woken),
        STORE_TEST(killed_clients_come_back),
        STORE_TEST(demotion_is_noticed),
        STORE_TEST(evicting_servers_are_warned_of),
        STORE_TEST(foreign_values_are_told),
        STORE_TEST(busy_servers_are_waited_for),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
