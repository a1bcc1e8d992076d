/* The way to the master by Sentinels that are played by the test. */
#include "redis_sentinel_kit.h"

#define NOBODY_CALLED_SO "*-1\r\n"

static void refuse_all(struct peer *peer) {
    peer->greeting = "-ERR max number of clients reached\r\n";
    peer->mute = true;
}

static void the_one_that_was_right_is_asked_first(void **state) {
    struct stage *stage = *state;
    refuse_all(&stage->sentinels[0].peer);
    stage->sentinels[1].address = NOBODY_CALLED_SO;
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    assert_true(stage->masters[0].scripts > 0);
    shop_turn(&stage->shop, NS_PER_S, &stage->masters[0].subscribes, 1);
    assert_int_equal(stage->masters[0].subscribes, 1); /* the listener has found it too */

    unsigned second = stage->sentinels[1].asked;
    unsigned third = stage->sentinels[2].asked;
    for (int i = 0; i < 3; i++) {
        stage_lose_master(stage, 0);
        stage_renew_until_yes(stage);
    }
    assert_true(stage->sentinels[2].asked >= third + 3);
    assert_true(stage->sentinels[1].asked <= second + 1); /* by the watcher */
}

static void a_silent_sentinel_costs_its_share(void **state) {
    struct stage *stage = *state;
    struct store_request request = shop_request(0, 1);
    stage->sentinels[0].peer.mute = true;
    stage->sentinels[1].peer.mute = true;
    shop_open(&stage->shop);
    request.timeout_ns = 1200 * NS_PER_MS;
    shop_expect(&stage->shop, STORE_RENEWED, &request, OUTCOME_YES);
}

static void what_is_wrong_is_told(void **state) {
    struct stage *stage = *state;
    struct fake_sentinel *one = &stage->sentinels[0];
    static const struct {
        const char *address, *text;
        enum election_reason reason;
    } cases[] = {
        {NOBODY_CALLED_SO, "no master is called my there", REASON_STORE_REFUSED},
        {"-ERR unknown command 'SENTINEL', with args beginning with: \r\n",
         "this is no Sentinel; for a Redis server use redis://", REASON_STORE_REFUSED},
        {"-NOAUTH Authentication required.\r\n", "NOAUTH", REASON_STORE_REFUSED},
        {"-NOPERM no permissions\r\n", "NOPERM", REASON_STORE_REFUSED},
        {"+OK\r\n", "a strange answer to SENTINEL", REASON_STORE_REFUSED},
        {"*1\r\n$1\r\na\r\n", "a strange answer to SENTINEL", REASON_STORE_REFUSED},
        {"*2\r\n$1\r\na\r\n:1\r\n", "a strange answer to SENTINEL", REASON_STORE_REFUSED},
        {"*2\r\n$1\r\na\r\n$5\r\n65536\r\n", "a strange answer", REASON_STORE_REFUSED},
        {"*2\r\n$1\r\na\r\n$1\r\n0\r\n", "a strange answer", REASON_STORE_REFUSED},
        {"*2\r\n$0\r\n\r\n$4\r\n6379\r\n", "a strange answer", REASON_STORE_REFUSED},
        {"*2\r\n$3\r\na b\r\n$4\r\n6379\r\n", "a strange answer", REASON_STORE_REFUSED},
        {"*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n", "127.0.0.1:1: connection refused",
         REASON_STORE_UNREACHABLE},
    };
    snprintf(stage->shop.url, sizeof stage->shop.url, "redis+sentinel://127.0.0.1:%u/my",
             one->peer.port);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        one->address = cases[i].address;
        shop_open(&stage->shop);
        const struct store_event *event = stage_renew(stage, OUTCOME_UNSURE);
        if (strstr(event->text, cases[i].text) == NULL) {
            fail_msg("%s instead of %s", event->text, cases[i].text);
        }
        assert_int_equal(event->reply.reason, cases[i].reason);
        assert_non_null(strstr(event->text, "Sentinel"));
        shop_close(&stage->shop);
    }
    assert_int_equal(stage->masters[0].accepted, 0);
}

static void all_sentinels_down_is_told(void **state) {
    struct stage *stage = *state;
    snprintf(stage->shop.url, sizeof stage->shop.url,
             "redis+sentinel://127.0.0.1:1,127.0.0.1:2/my");
    shop_open(&stage->shop);
    const struct store_event *event = stage_renew(stage, OUTCOME_UNSURE);
    assert_string_equal(event->text, "none of 2 Sentinels tells the master: Sentinel "
                                     "127.0.0.1:2: connection refused");
    assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
}

#define REPLICA "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n"

static unsigned roles_asked;

static bool count_role(struct peer_connection *connection, const redisReply *request) {
    (void)connection;
    roles_asked += strcmp(request->element[0]->str, "ROLE") == 0;
    return false;
}

static void a_replica_is_not_taken_for_the_master(void **state) {
    struct stage *stage = *state;
    stage->masters[0].role = REPLICA;
    stage->masters[0].before = count_role;
    roles_asked = 0;
    shop_open(&stage->shop);
    const struct store_event *event = stage_renew(stage, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "a replica of 127.0.0.1:6379, not a master"));
    assert_non_null(strstr(event->text, "the master by Sentinel 127.0.0.1"));
    assert_int_equal(stage->masters[0].scripts, 0);
    assert_int_equal(roles_asked, 1); /* all three say the same: it is tried once */
    for (size_t i = 0; i < SENTINELS; i++) {
        assert_true(stage->sentinels[i].asked >= 1);
    }
    /* One that knows better is asked within the same attempt. */
    sentinel_name(&stage->sentinels[2], &stage->masters[1], 1);
    stage_renew(stage, OUTCOME_YES);
    assert_int_equal(stage->masters[0].scripts, 0);
    assert_true(stage->masters[1].scripts > 0);
}

static void an_address_that_does_not_answer_leaves_time_for_another(void **state) {
    struct stage *stage = *state;
    stage->masters[0].mute = true; /* it connects, and nothing more */
    sentinel_name(&stage->sentinels[1], &stage->masters[1], 1);
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    assert_true(stage->masters[1].scripts > 0);
}

static void older_news_count_only_without_others(void **state) {
    struct stage *stage = *state;
    sentinel_name(&stage->sentinels[0], &stage->masters[1], 7);
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    assert_true(stage->masters[1].scripts > 0);

    /* The first is gone; the second has not heard of the failover, the third has. */
    refuse_all(&stage->sentinels[0].peer);
    sentinel_name(&stage->sentinels[1], &stage->masters[0], 6);
    sentinel_name(&stage->sentinels[2], &stage->masters[1], 7);
    stage_lose_master(stage, 1);
    stage_renew_until_yes(stage);
    assert_int_equal(stage->masters[0].scripts, 0);

    /* Those that know better are silent: the older answer proves nothing. */
    refuse_all(&stage->sentinels[2].peer);
    stage_lose_master(stage, 1);
    for (int i = 0; i < 3; i++) {
        stage_renew(stage, OUTCOME_UNSURE);
    }
    assert_int_equal(stage->masters[0].scripts, 0);

    /* All answer, and nobody knows better. That is right: the Sentinels were made anew. */
    for (size_t i = 0; i < SENTINELS; i++) {
        stage->sentinels[i].peer.greeting = NULL;
        stage->sentinels[i].peer.mute = false;
        sentinel_name(&stage->sentinels[i], &stage->masters[0], 0);
    }
    stage_renew_until_yes(stage);
    assert_true(stage->masters[0].scripts > 0);
}

static void a_password_is_no_matter_to_a_sentinel_without(void **state) {
    struct stage *stage = *state;
    stage_set_url(stage, "gavel:secret@");
    for (size_t i = 0; i < SENTINELS; i++) {
        stage->sentinels[i].peer.auth =
            i == 0 ? "-ERR unknown command 'AUTH', with args beginning with: 'gavel' 'secret'\r\n"
                   : "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    }
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    assert_true(stage->sentinels[0].peer.auths > 0 && stage->masters[0].auths > 0);

    /* One that wants another password is told of, without it. */
    shop_close(&stage->shop);
    for (size_t i = 0; i < SENTINELS; i++) {
        stage->sentinels[i].address = "-NOAUTH Authentication required.\r\n";
    }
    shop_open(&stage->shop);
    const struct store_event *event = stage_renew(stage, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "Sentinel"));
    assert_non_null(strstr(event->text, "WRONGPASS"));
    assert_null(strstr(event->text, "secret"));
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
}

static void masters_may_be_named_by_host(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < SENTINELS; i++) {
        sentinel_name_host(&stage->sentinels[i], "localhost", stage->masters[0].port);
    }
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    for (size_t i = 0; i < SENTINELS; i++) {
        sentinel_name_host(&stage->sentinels[i], "no-such-host.invalid", stage->masters[0].port);
    }
    stage_lose_master(stage, 0);
    const struct store_event *event = stage_renew(stage, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "looking up no-such-host.invalid"));
}

static void sentinels_know_of_replicas(void **state) {
    struct stage *stage = *state;
    stage->shop.setup.wait_replicas = 0;
    stage->sentinels[0].replicas = 2;
    shop_open(&stage->shop);
    assert_int_equal(stage_renew(stage, OUTCOME_YES)->reply.warnings, WARNING_OVERLAP_POSSIBLE);
}

static void closes_at_any_stage(void **state) {
    struct stage *stage = *state;
    unsigned files = 0;
    for (int turns = 0; turns < 60; turns++) {
        for (size_t i = 0; i < SENTINELS; i++) {
            stage->sentinels[i].peer.mute = turns % 4 == 1;
            if (turns % 4 == 2) {
                sentinel_name_host(&stage->sentinels[i], "localhost", stage->masters[1].port);
            } else {
                sentinel_name(&stage->sentinels[i], &stage->masters[0], 1);
            }
        }
        stage->masters[0].mute = turns % 4 == 3;
        shop_open(&stage->shop);
        for (size_t i = 0; i < SHOP_ELECTIONS; i++) {
            struct store_request request = shop_request(i, 1);
            shop_issue(&stage->shop, i == 0 ? STORE_ACQUIRED : STORE_RENEWED, &request);
        }
        for (int i = 0; i < turns; i++) {
            uv_run(&stage->shop.loop, UV_RUN_NOWAIT);
        }
        shop_close(&stage->shop);
        shop_turn(&stage->shop, 10 * NS_PER_MS, NULL, 0);
        if (turns == 10) {
            files = shop_open_files();
        }
    }
    assert_true(shop_open_files() <= files + 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGE_TEST(the_one_that_was_right_is_asked_first),
        STAGE_TEST(a_silent_sentinel_costs_its_share),
        STAGE_TEST(what_is_wrong_is_told),
        STAGE_TEST(all_sentinels_down_is_told),
        STAGE_TEST(a_replica_is_not_taken_for_the_master),
        STAGE_TEST(an_address_that_does_not_answer_leaves_time_for_another),
        STAGE_TEST(older_news_count_only_without_others),
        STAGE_TEST(a_password_is_no_matter_to_a_sentinel_without),
        STAGE_TEST(masters_may_be_named_by_host),
        STAGE_TEST(sentinels_know_of_replicas),
        STAGE_TEST(closes_at_any_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
