/* A Sentinel tells of a new master, and the connections move. */
#include "redis_sentinel_kit.h"

#include "store/redis/redis_inside.h"

static struct fake_sentinel *watched(struct stage *stage) {
    for (int i = 0; i < 300; i++) {
        for (size_t k = 0; k < SENTINELS; k++) {
            if (stage->sentinels[k].watcher != NULL) {
                return &stage->sentinels[k];
            }
        }
        shop_turn(&stage->shop, 10 * NS_PER_MS, NULL, 0);
    }
    fail_msg("no Sentinel is listened to");
    return NULL;
}

static void publish(struct fake_sentinel *sentinel, const char *channel, const char *payload) {
    char text[512];
    snprintf(text, sizeof text, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
             strlen(channel), channel, strlen(payload), payload);
    peer_say(sentinel->watcher, text);
}

#define SWITCH "+switch-master"
#define PROMOTED "+failover-state-reconf-slaves"

static void publish_switch(struct fake_sentinel *sentinel, const struct peer *old,
                           const struct peer *new) {
    char payload[128];
    snprintf(payload, sizeof payload, "my 127.0.0.1 %u 127.0.0.1 %u", old->port, new->port);
    publish(sentinel, SWITCH, payload);
}

static void connected_to_the_first(struct stage *stage) {
    shop_open(&stage->shop);
    stage_renew(stage, OUTCOME_YES);
    shop_turn(&stage->shop, NS_PER_S, &stage->masters[0].subscribes, 1);
    shop_turn(&stage->shop, 20 * NS_PER_MS, NULL, 0);
}

static void a_new_master_is_moved_to(void **state) {
    struct stage *stage = *state;
    connected_to_the_first(stage);
    struct fake_sentinel *sentinel = watched(stage);
    assert_int_equal(stage->masters[1].accepted, 0);
    /* The old one goes on answering, and the other Sentinels do not know yet. */
    sentinel_name(sentinel, &stage->masters[1], 2);
    publish_switch(sentinel, &stage->masters[0], &stage->masters[1]);
    shop_turn(&stage->shop, 3 * NS_PER_S, &stage->masters[1].subscribes, 1);
    assert_int_equal(stage->masters[1].subscribes, 1);
    unsigned before = stage->masters[0].scripts;
    stage_renew(stage, OUTCOME_YES);
    assert_int_equal(stage->masters[0].scripts, before);
    assert_int_equal(stage->shop.status.reconnects, 1);
}

/* A request that is under way when the news come is unsure at once, and not lost. */
static void requests_are_not_lost_in_moving(void **state) {
    struct stage *stage = *state;
    connected_to_the_first(stage);
    struct fake_sentinel *sentinel = watched(stage);
    struct store_request request = shop_request(0, 1);
    stage->masters[0].answer = NULL;
    unsigned scripts = stage->masters[0].scripts;
    unsigned answers = stage->shop.answers[0];
    shop_issue(&stage->shop, STORE_RENEWED, &request);
    shop_turn(&stage->shop, NS_PER_S, &stage->masters[0].scripts, scripts + 1);
    sentinel_name(sentinel, &stage->masters[1], 2);
    publish_switch(sentinel, &stage->masters[0], &stage->masters[1]);
    int64_t start_ns = clock_now().boot_ns;
    shop_turn(&stage->shop, NS_PER_S, &stage->shop.answers[0], answers + 1);
    assert_int_equal(stage->shop.last[0].reply.outcome, OUTCOME_UNSURE);
    assert_non_null(strstr(stage->shop.last[0].text, "the Sentinels have made 127.0.0.1:"));
    assert_true(clock_now().boot_ns - start_ns < NS_PER_S);
    stage_renew(stage, OUTCOME_YES);
    assert_true(stage->masters[1].scripts > 0);
}

/* The master is gone, attempts to connect are far apart, and the news come in between: whether the
 * next attempt was brought forward. */
static bool ends_the_pause(struct stage *stage) {
    struct peer *old = &stage->masters[0];
    connected_to_the_first(stage);
    struct fake_sentinel *sentinel = watched(stage);
    const struct redis_link *link = &((struct redis_store *)stage->shop.store)->link;
    old->greeting = "-ERR max number of clients reached\r\n";
    old->mute = true;
    peer_hang_up(old);
    int64_t start_ns = clock_now().boot_ns;
    while (link->retry_ns < clock_now().boot_ns + 300 * NS_PER_MS) {
        assert_true(clock_now().boot_ns - start_ns < 30 * NS_PER_S);
        shop_turn(&stage->shop, NS_PER_MS, NULL, 0);
    }
    int64_t planned_ns = link->retry_ns;
    sentinel_name(sentinel, &stage->masters[1], 2);
    publish_switch(sentinel, old, &stage->masters[1]);
    while (link->retry_ns == planned_ns) {
        uv_run(&stage->shop.loop, UV_RUN_ONCE);
    }
    bool brought_forward = link->retry_ns > 0;
    assert_true(link->retry_ns < planned_ns);
    stage_renew_until_yes(stage);
    assert_true(stage->masters[1].scripts > 0);
    return brought_forward;
}

static void news_end_a_pause(void **state) {
    struct stage *stage = *state;
    bool brought_forward = false;
    for (int i = 0; i < 5 && !brought_forward; i++) { /* a busy host may be late for it */
        for (size_t k = 0; k < SENTINELS; k++) {
            sentinel_name(&stage->sentinels[k], &stage->masters[0], 1);
            stage->sentinels[k].watcher = NULL;
        }
        stage->masters[0].greeting = NULL;
        stage->masters[0].mute = false;
        stage->masters[0].subscribes = 0;
        brought_forward = ends_the_pause(stage);
        shop_close(&stage->shop);
    }
    assert_true(brought_forward);
}

static void a_promotion_is_asked_about_at_once(void **state) {
    struct stage *stage = *state;
    connected_to_the_first(stage);
    struct fake_sentinel *sentinel = watched(stage);
    sentinel_name(sentinel, &stage->masters[1], 2);
    publish(sentinel, PROMOTED, "master my 127.0.0.1 6379");
    shop_turn(&stage->shop, 3 * NS_PER_S, &stage->masters[1].subscribes, 1);
    assert_int_equal(stage->masters[1].subscribes, 1);
}

static void other_messages_move_nobody(void **state) {
    struct stage *stage = *state;
    connected_to_the_first(stage);
    static const char *const messages[] = {
        "your 127.0.0.1 6379 127.0.0.1 1", /* another master's */
        "my 127.0.0.1 6379 127.0.0.1",
        "my 127.0.0.1 6379 127.0.0.1 x1",
        "my 127.0.0.1 6379 127.0.0.1 65536",
        "my 127.0.0.1 6379 127.0.0.1 0",
        "my  127.0.0.1 6379 127.0.0.1 1",
        "my 127.0.0.1 6379 127.0.0.1 1 x",
        "my 127.0.0.1 6379  1",
        "",
        "m",
    };
    struct fake_sentinel *sentinel = watched(stage);
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        publish(sentinel, SWITCH, messages[i]);
    }
    /* Where it is already; and a promotion of another group. */
    publish_switch(sentinel, &stage->masters[1], &stage->masters[0]);
    publish(sentinel, PROMOTED, "master mymy 127.0.0.1 6379");
    publish(sentinel, PROMOTED, "master");
    shop_turn(&stage->shop, 400 * NS_PER_MS, NULL, 0);
    assert_int_equal(stage->masters[1].accepted, 0);
    assert_int_equal(stage->shop.status.reconnects, 0);
    stage_renew(stage, OUTCOME_YES);
}

static void go_on_to_the_next(struct stage *stage) {
    struct fake_sentinel *sentinel = watched(stage);
    struct peer_connection *watcher = sentinel->watcher;
    sentinel->watcher = NULL;
    peer_drop(watcher);
}

/* Whoever is asked next by the watcher, and has older news or another name, moves nobody. */
static void only_newer_news_move(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < SENTINELS; i++) {
        sentinel_name(&stage->sentinels[i], &stage->masters[0], 5);
    }
    connected_to_the_first(stage);
    sentinel_name(&stage->sentinels[0], &stage->masters[1], 4);
    sentinel_name(&stage->sentinels[1], &stage->masters[1], 5);
    for (int i = 0; i < 6; i++) {
        go_on_to_the_next(stage);
    }
    shop_turn(&stage->shop, 300 * NS_PER_MS, NULL, 0);
    assert_int_equal(stage->masters[1].accepted, 0);
    sentinel_name(&stage->sentinels[1], &stage->masters[1], 6);
    for (int i = 0; i < 8 && stage->masters[1].subscribes == 0; i++) {
        go_on_to_the_next(stage);
        shop_turn(&stage->shop, 300 * NS_PER_MS, &stage->masters[1].subscribes, 1);
    }
    assert_int_equal(stage->masters[1].subscribes, 1);
    stage_renew(stage, OUTCOME_YES);
}

/* Made anew, the Sentinels count epochs from the beginning; what all of them say is so. */
static void what_all_say_moves(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < SENTINELS; i++) {
        sentinel_name(&stage->sentinels[i], &stage->masters[0], 5);
    }
    connected_to_the_first(stage);
    for (size_t i = 0; i < SENTINELS; i++) {
        sentinel_name(&stage->sentinels[i], &stage->masters[1], 0);
    }
    for (int i = 0; i < 8 && stage->masters[1].subscribes == 0; i++) {
        go_on_to_the_next(stage);
        shop_turn(&stage->shop, 300 * NS_PER_MS, &stage->masters[1].subscribes, 1);
    }
    assert_int_equal(stage->masters[1].subscribes, 1);
    unsigned before = stage->masters[0].scripts;
    stage_renew(stage, OUTCOME_YES);
    assert_int_equal(stage->masters[0].scripts, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_new_master_is_moved_to),   STAGE_TEST(requests_are_not_lost_in_moving),
        STAGE_TEST(news_end_a_pause),           STAGE_TEST(a_promotion_is_asked_about_at_once),
        STAGE_TEST(other_messages_move_nobody), STAGE_TEST(only_newer_news_move),
        STAGE_TEST(what_all_say_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
