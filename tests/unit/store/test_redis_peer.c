/* The store against a peer that does what a good server never does. */
#include "redis_store_kit.h"

static void silent_peer_costs_the_timeout(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer->mute = true;
    request.timeout_ns = 300 * NS_PER_MS;
    for (int i = 0; i < 3; i++) {
        int64_t start_ns = clock_now().boot_ns;
        const struct store_event *event =
            shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
        int64_t took_ns = clock_now().boot_ns - start_ns;
        assert_true(took_ns >= 299 * NS_PER_MS && took_ns < 600 * NS_PER_MS);
        assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
        assert_false(peer->shop->status.up);
    }
    peer->mute = false;
    peer_renew(peer, OUTCOME_YES);
    assert_true(peer->shop->status.up);
    assert_string_equal(peer->shop->status.problem, "");
}

static void strange_answers_are_unsure(void **state) {
    struct peer *peer = *state;
    static const char *const answers[] = {
        "+OK\r\n",
        ":1\r\n",
        "$2\r\nOK\r\n",
        "*0\r\n",
        "*-1\r\n",
        "$-1\r\n",
        "*2\r\n:1\r\n$-1\r\n",
        "*6\r\n$3\r\nyes\r\n:7\r\n$5\r\n10000\r\n$1\r\n1\r\n$0\r\n\r\n$1\r\n0\r\n",
        "*1073741824\r\n",
        "*-2\r\n",
        "$9999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\x01\x02\x03"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct store_request request = shop_request(0, 1);
        request.timeout_ns = 300 * NS_PER_MS;
        peer->answer = answers[i];
        shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
        unsigned accepted = peer->accepted;
        peer->answer = PEER_RENEWED;
        peer_renew(peer, OUTCOME_YES);
        assert_true(peer->accepted > accepted); /* on another connection */
    }
}

static void errors_keep_the_connection(void **state) {
    struct peer *peer = *state;
    static const char *const errors[] = {
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-MISCONF Redis is configured to save RDB snapshots\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
        "-TRYAGAIN Multiple keys request\r\n",
        "-ERR what is this\r\n",
        "-MOVED 3999 127.0.0.1:6381\r\n",
        "-CLUSTERDOWN Hash slot not served\r\n",
    };
    peer_renew(peer, OUTCOME_YES);
    unsigned accepted = peer->accepted;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        peer->answer = errors[i];
        const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(errors[i] + 1, " "), errors[i] + 1);
        assert_non_null(strstr(event->text, word));
        assert_non_null(strstr(peer->shop->status.problem, word));
        if (strstr(errors[i], "MOVED") != NULL || strstr(errors[i], "CLUSTER") != NULL) {
            assert_non_null(strstr(event->text, "cluster endpoint is not supported"));
        }
        peer->answer = PEER_RENEWED;
        peer_renew(peer, OUTCOME_YES);
    }
    assert_int_equal(peer->accepted, accepted);
}

static void demoted_masters_are_left(void **state) {
    struct peer *peer = *state;
    static const char *const errors[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-ERR Error running script (call to f_4f): @user_script:4: -READONLY You can't write\r\n",
        "-GAVELNOTMASTER the server is not a master\r\n",
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        peer_renew(peer, OUTCOME_YES);
        unsigned accepted = peer->accepted;
        peer->answer = errors[i];
        assert_int_equal(peer_renew(peer, OUTCOME_UNSURE)->reply.reason, REASON_STORE_REFUSED);
        peer->answer = PEER_RENEWED;
        peer_renew(peer, OUTCOME_YES);
        assert_int_equal(peer->accepted, accepted + 1);
    }
    assert_true(peer->shop->status.reconnects >= 3);
}

static void dropped_reply_is_unsure_at_once(void **state) {
    struct peer *peer = *state;
    static const char *const halves[] = {NULL, "*6\r\n$3\r\nye", "*6\r\n", "-LOAD"};
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        peer->answer = halves[i];
        peer->hang_up = true;
        int64_t start_ns = clock_now().boot_ns;
        const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
        assert_true(clock_now().boot_ns - start_ns < NS_PER_S);
        assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
        assert_true(event->reply.sent.boot_ns >= start_ns);
        peer->answer = PEER_RENEWED;
        peer->hang_up = false;
        peer_renew(peer, OUTCOME_YES);
    }
}

/* A lease counts from the sending: a slow answer must not make it longer. */
static void sent_is_read_before_the_bytes_leave(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    struct store_request request = shop_request(0, 1);
    peer_renew(peer, OUTCOME_YES);
    peer->answer = NULL;
    unsigned scripts = peer->scripts;
    struct instant called = clock_now();
    shop_issue(shop, STORE_RENEWED, &request);
    shop_turn(shop, NS_PER_S, &peer->scripts, scripts + 1);
    struct instant arrived = clock_now();
    shop_turn(shop, 50 * NS_PER_MS, NULL, 0);
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_say(peer->connections[i], PEER_RENEWED);
        }
    }
    shop_turn(shop, NS_PER_S, &shop->answers[0], shop->answers[0] + 1);
    const struct store_reply *reply = &shop->last[0].reply;
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_true(reply->sent.boot_ns >= called.boot_ns && reply->sent.boot_ns <= arrived.boot_ns);
    assert_true(reply->sent.real_ns >= called.real_ns && reply->sent.real_ns <= arrived.real_ns);
}

static void one_timeout_is_the_end_for_all_on_it(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    peer_renew(peer, OUTCOME_YES);
    peer->answer = NULL;
    struct store_request quick = shop_request(0, 1);
    struct store_request patient = shop_request(1, 1);
    quick.timeout_ns = 200 * NS_PER_MS;
    unsigned before = shop->answers[1];
    shop_issue(shop, STORE_RENEWED, &patient);
    shop_expect(shop, STORE_RENEWED, &quick, OUTCOME_UNSURE);
    assert_int_equal(shop->answers[1], before + 1); /* its answer could be taken for another's */
    assert_int_equal(shop->last[1].reply.outcome, OUTCOME_UNSURE);

    /* The late answers come to nobody. */
    peer->answer = "*6\r\n$3\r\nyes\r\n$1\r\n9\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n"
                   "$7\r\nrun:rep\r\n$1\r\n0\r\n";
    assert_true(shop_expect(shop, STORE_RENEWED, &quick, OUTCOME_YES)->reply.token == 9);
}

static void unasked_talk_ends_the_connection(void **state) {
    struct peer *peer = *state;
    peer_renew(peer, OUTCOME_YES);
    unsigned accepted = peer->accepted;
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_say(peer->connections[i], PEER_RENEWED); /* to the subscriber too */
        }
    }
    shop_turn(peer->shop, 3 * NS_PER_S, &peer->accepted, accepted + 2);
    assert_int_equal(peer->accepted, accepted + 2);
    peer->answer = "*6\r\n$3\r\nyes\r\n$1\r\n8\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n"
                   "$7\r\nrun:rep\r\n$1\r\n0\r\n";
    assert_true(peer_renew(peer, OUTCOME_YES)->reply.token == 8);
}

static void greeting_errors_are_told(void **state) {
    struct peer *peer = *state;
    peer->greeting = "-ERR max number of clients reached\r\n";
    peer->mute = true;
    const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_non_null(strstr(event->text, "max number of clients"));
    assert_int_equal(peer->scripts, 0);
    peer->greeting = NULL;
    peer->mute = false;
    peer_renew(peer, OUTCOME_YES);
}

static void roles_are_checked(void **state) {
    struct peer *peer = *state;
    static const struct {
        const char *role, *text;
    } roles[] = {
        {"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n",
         "not a master"},
        {"*2\r\n$8\r\nsentinel\r\n*0\r\n", "Sentinel"},
        {"+OK\r\n", "strange answer to ROLE"},
        {"*0\r\n", "strange answer to ROLE"},
        {"-NOAUTH Authentication required.\r\n", "NOAUTH"},
        {"-ERR max number of clients reached\r\n", "max number of clients"},
        {"-LOADING Redis is loading\r\n", "LOADING"},
    };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        peer_hang_up(peer);
        peer->role = roles[i].role;
        const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
        if (strstr(event->text, "closed the connection") != NULL) {
            event = peer_renew(peer, OUTCOME_UNSURE); /* that was the hanging up */
        }
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
        assert_non_null(strstr(event->text, roles[i].text));
        assert_int_equal(peer->scripts, 0); /* nothing is asked of it */
    }
    static const char *const denied[] = {
        "-NOPERM this user has no permissions to run the 'role' command\r\n",
        "-ERR unknown command 'ROLE', with args beginning with: \r\n"};
    for (size_t i = 0; i < 2; i++) {
        peer->role = denied[i];
        peer_renew(peer, OUTCOME_YES);
        peer_hang_up(peer);
        shop_turn(peer->shop, 100 * NS_PER_MS, NULL, 0);
    }
}

static void hashes_are_not_needed(void **state) {
    struct peer *peer = *state;
    static const char *const errors[] = {
        "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
        "-ERR unknown command 'EVALSHA', with args beginning with: 'a'\r\n"};
    for (size_t i = 0; i < 3; i++) {
        unsigned before = peer->scripts;
        peer->answer = errors[i];
        peer_renew(peer, OUTCOME_UNSURE); /* this peer refuses the body too */
        assert_int_equal(peer->scripts, before + 2);
        peer_hang_up(peer);
        shop_turn(peer->shop, 200 * NS_PER_MS, NULL, 0);
    }
}

static void clock_steps_are_counted(void **state) {
    struct peer *peer = *state;
    static char answer[256];
    static const char format[] = "*6\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n%lld\r\n"
                                 "$7\r\nrun:rep\r\n$1\r\n0\r\n";
    static const long long steps_us[] = {0, 1000000, 5000000, 5000000, -5000000};
    static const unsigned counts[] = {0, 0, 1, 1, 2};
    peer->answer = answer;
    for (size_t i = 0; i < 5; i++) {
        long long now_us = clock_now().boot_ns / NS_PER_US + 1796157414879123;
        snprintf(answer, sizeof answer, format, now_us + steps_us[i]);
        peer_renew(peer, OUTCOME_YES);
        assert_int_equal(peer->shop->status.clock_steps, counts[i]);
    }
}

static void closes_at_any_stage(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    shop_close(shop);
    for (int turns = 0; turns < 40; turns++) {
        peer->mute = turns % 3 == 1;
        peer->hang_up = turns % 3 == 2;
        shop_open(shop);
        for (size_t i = 0; i < SHOP_ELECTIONS; i++) {
            struct store_request request = shop_request(i, 1);
            shop_issue(shop, i == 0 ? STORE_ACQUIRED : STORE_RENEWED, &request);
        }
        for (int i = 0; i < turns; i++) {
            uv_run(&shop->loop, UV_RUN_NOWAIT);
        }
        shop_close(shop);
    }
    peer_hang_up(peer);
    shop_turn(shop, 50 * NS_PER_MS, NULL, 0);
}

static void lost_connections_leave_nothing_behind(void **state) {
    struct peer *peer = *state;
    peer_renew(peer, OUTCOME_YES);
    unsigned files = shop_open_files();
    for (int i = 0; i < 200; i++) {
        peer_hang_up(peer);
        struct store_request request = shop_request(0, 1);
        while (shop_do(peer->shop, STORE_RENEWED, &request)->reply.outcome != OUTCOME_YES) {
        }
    }
    shop_turn(peer->shop, 100 * NS_PER_MS, NULL, 0);
    assert_true(shop_open_files() <= files + 4);
    assert_true(peer->shop->status.reconnects >= 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PEER_TEST(silent_peer_costs_the_timeout),
        PEER_TEST(strange_answers_are_unsure),
        PEER_TEST(errors_keep_the_connection),
        PEER_TEST(demoted_masters_are_left),
        PEER_TEST(dropped_reply_is_unsure_at_once),
        PEER_TEST(sent_is_read_before_the_bytes_leave),
        PEER_TEST(one_timeout_is_the_end_for_all_on_it),
        PEER_TEST(unasked_talk_ends_the_connection),
        PEER_TEST(greeting_errors_are_told),
        PEER_TEST(roles_are_checked),
        PEER_TEST(hashes_are_not_needed),
        PEER_TEST(clock_steps_are_counted),
        PEER_TEST(closes_at_any_stage),
        PEER_TEST(lost_connections_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
