#ifndef GAVEL_TESTS_REDIS_SENTINEL_KIT_H
#define GAVEL_TESTS_REDIS_SENTINEL_KIT_H

#include "redis_store_kit.h"

/*
 * Three Sentinels and two masters that are played by the test, and a store that is to find its way.
 */
#define SENTINELS 3

struct fake_sentinel {
    struct peer peer;    /* first: the peer's hook finds the rest by it */
    unsigned asked;      /* where the master is */
    const char *address; /* the answer to that, in the protocol's bytes */
    char answer[256];
    unsigned epoch; /* 0: not told */
    unsigned replicas;
    struct peer_connection *watcher; /* who has subscribed last */
};

struct stage {
    struct shop shop;
    struct fake_sentinel sentinels[SENTINELS];
    struct peer masters[2];
};

static inline void sentinel_say_details(struct peer_connection *connection,
                                        const struct fake_sentinel *sentinel) {
    char text[256];
    char epoch[16];
    char replicas[16];
    if (sentinel->epoch == 0) {
        peer_say(connection, "-NOPERM this user has no permissions to run this subcommand\r\n");
        return;
    }
    snprintf(epoch, sizeof epoch, "%u", sentinel->epoch);
    snprintf(replicas, sizeof replicas, "%u", sentinel->replicas);
    snprintf(text, sizeof text,
             "*6\r\n$4\r\nname\r\n$2\r\nmy\r\n$12\r\nconfig-epoch\r\n$%zu\r\n%s\r\n"
             "$10\r\nnum-slaves\r\n$%zu\r\n%s\r\n",
             strlen(epoch), epoch, strlen(replicas), replicas);
    peer_say(connection, text);
}

static inline bool sentinel_on_request(struct peer_connection *connection,
                                       const redisReply *request) {
    struct fake_sentinel *sentinel = (struct fake_sentinel *)connection->peer;
    if (strcmp(request->element[0]->str, "SENTINEL") == 0) {
        assert_string_equal(request->element[2]->str, "my");
        if (strcmp(request->element[1]->str, "MASTER") == 0) {
            sentinel_say_details(connection, sentinel);
        } else {
            sentinel->asked++;
            peer_say(connection, sentinel->address);
        }
        return true;
    }
    if (strcmp(request->element[0]->str, "SUBSCRIBE") == 0) {
        sentinel->watcher = connection;
    }
    return false;
}

/* That Sentinel names a server from now on. */
static inline void sentinel_name_host(struct fake_sentinel *sentinel, const char *host,
                                      unsigned port_number) {
    char port[8];
    snprintf(port, sizeof port, "%u", port_number);
    snprintf(sentinel->answer, sizeof sentinel->answer, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
             strlen(host), host, strlen(port), port);
    sentinel->address = sentinel->answer;
}

static inline void sentinel_name(struct fake_sentinel *sentinel, const struct peer *master,
                                 unsigned epoch) {
    sentinel_name_host(sentinel, "127.0.0.1", master->port);
    sentinel->epoch = epoch;
}

static inline void stage_set_url(struct stage *stage, const char *user) {
    snprintf(stage->shop.url, sizeof stage->shop.url,
             "redis+sentinel://%s127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/my", user,
             stage->sentinels[0].peer.port, stage->sentinels[1].peer.port,
             stage->sentinels[2].peer.port);
}

static inline int stage_begin(void **state) {
    static struct stage stage;
    memset(&stage, 0, sizeof stage);
    shop_init(&stage.shop);
    for (size_t i = 0; i < 2; i++) {
        peer_start(&stage.masters[i], &stage.shop);
    }
    for (size_t i = 0; i < SENTINELS; i++) {
        peer_start(&stage.sentinels[i].peer, &stage.shop);
        stage.sentinels[i].peer.before = sentinel_on_request;
        sentinel_name(&stage.sentinels[i], &stage.masters[0], 1);
    }
    stage_set_url(&stage, "");
    *state = &stage;
    return 0;
}

static inline int stage_end(void **state) {
    struct stage *stage = *state;
    if (stage->shop.store != NULL) {
        shop_close(&stage->shop);
    }
    for (size_t i = 0; i < 2; i++) {
        peer_stop(&stage->masters[i]);
    }
    for (size_t i = 0; i < SENTINELS; i++) {
        peer_stop(&stage->sentinels[i].peer);
    }
    shop_finish(&stage->shop);
    return 0;
}

#define STAGE_TEST(function) cmocka_unit_test_setup_teardown((function), stage_begin, stage_end)

static inline const struct store_event *stage_renew(struct stage *stage, enum outcome outcome) {
    struct store_request request = shop_request(0, 1);
    return shop_expect(&stage->shop, STORE_RENEWED, &request, outcome);
}

static inline void stage_renew_until_yes(struct stage *stage) {
    struct store_request request = shop_request(0, 1);
    int64_t start_ns = clock_now().boot_ns;
    while (shop_do(&stage->shop, STORE_RENEWED, &request)->reply.outcome != OUTCOME_YES) {
        assert_true(clock_now().boot_ns - start_ns < 10 * NS_PER_S);
    }
}

/* Ends the connections of requests and of the listener, and lets them be missed. */
static inline void stage_lose_master(struct stage *stage, size_t index) {
    peer_hang_up(&stage->masters[index]);
    shop_turn(&stage->shop, 20 * NS_PER_MS, NULL, 0);
}

#endif
