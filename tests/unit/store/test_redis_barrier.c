/* A yes that counts only when replicas have acknowledged it, and what replicas are warned of. */
#include "redis_store_kit.h"

#include "store/redis/barrier.h"
#include "store/redis/replicas.h"

static struct {
    const char *answer; /* to WAIT; NULL: silence */
    unsigned waits;
    long replicas;
    long timeout_ms;
    unsigned hold_scripts; /* scripts are answered together, when so many have come */
    unsigned held;
} waiter;

static bool on_request(struct peer_connection *connection, const redisReply *request) {
    const char *name = request->element[0]->str;
    if (strcmp(name, "WAIT") == 0) {
        assert_int_equal(request->elements, 3);
        waiter.waits++;
        waiter.replicas = strtol(request->element[1]->str, NULL, 10);
        waiter.timeout_ms = strtol(request->element[2]->str, NULL, 10);
        if (waiter.answer != NULL) {
            peer_say(connection, waiter.answer);
        }
        return true;
    }
    if (strncmp(name, "EVAL", 4) == 0 && waiter.hold_scripts > 0) {
        connection->peer->scripts++;
        waiter.held++;
        if (waiter.held == waiter.hold_scripts) {
            char all[1024] = "";
            for (unsigned i = 0; i < waiter.held; i++) {
                strcat(all, connection->peer->answer);
            }
            waiter.held = 0;
            peer_say(connection, all);
        }
        return true;
    }
    return false;
}

static int begin(void **state) {
    static struct {
        struct shop shop;
        struct peer peer;
    } all;
    memset(&waiter, 0, sizeof waiter);
    waiter.answer = ":1\r\n";
    shop_init(&all.shop);
    peer_start(&all.peer, &all.shop);
    all.peer.before = on_request;
    all.shop.setup.wait_replicas = 1;
    shop_open(&all.shop);
    *state = &all.peer;
    return 0;
}

#define WAIT_TEST(function) cmocka_unit_test_setup_teardown((function), begin, peer_test_end)

static void yes_waits_for_the_replicas(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer_renew(peer, OUTCOME_YES);
    assert_int_equal(waiter.waits, 1);
    assert_int_equal(waiter.replicas, 1);
    /* Half of what is left at most: whoever comes behind it needs time too. */
    assert_in_range(waiter.timeout_ms, 1, SHOP_TIMEOUT_NS / NS_PER_MS / 2);
    unsigned accepted = peer->accepted;
    waiter.answer = ":0\r\n";
    const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_string_equal(event->text, "0 of 1 replicas acknowledged (--redis-wait-replicas)");
    assert_string_equal(peer->shop->status.problem,
                        "0 of 1 replicas acknowledged (--redis-wait-replicas)");
    assert_false(peer->shop->status.up);
    waiter.answer = ":7\r\n";
    peer_renew(peer, OUTCOME_YES);
    assert_true(peer->shop->status.up);
    assert_string_equal(peer->shop->status.problem, "");
    assert_int_equal(peer->accepted, accepted); /* on the same connection all the time */
    request.timeout_ns = NS_PER_MS;             /* never zero, which would be for ever */
    shop_do(peer->shop, STORE_RENEWED, &request);
    assert_true(waiter.timeout_ms >= 1);
}

static void acquires_wait_too(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer->answer = "*9\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n"
                   "$7\r\nrun:rep\r\n$1\r\n1\r\n$5\r\nclean\r\n$4\r\nnone\r\n$1\r\n0\r\n";
    waiter.answer = ":0\r\n";
    shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_UNSURE);
    waiter.answer = ":1\r\n";
    const struct store_reply *reply =
        &shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_YES)->reply;
    assert_int_equal(reply->prior, PRIOR_CLEAN);
    assert_int_equal(reply->token, 7);
    assert_int_equal(waiter.waits, 2);
}

/* The record may be about a grant that was never acknowledged: its end says nothing of others. */
static void an_end_proves_nothing(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer->answer = "*9\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n"
                   "$7\r\nrun:rep\r\n$1\r\n1\r\n$3\r\nend\r\n$4\r\nnone\r\n"
                   "$16\r\n1796157414000000\r\n";
    const struct store_reply *reply =
        &shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_YES)->reply;
    assert_int_equal(reply->prior, PRIOR_NONE);
    assert_int_equal(reply->doubt, DOUBT_UNCLEAN);
}

static void others_are_answered_at_once(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    shop_expect(peer->shop, STORE_RELEASED, &request, OUTCOME_YES);
    peer->answer = "*6\r\n$4\r\nfree\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n"
                   "$7\r\nrun:rep\r\n$1\r\n1\r\n";
    shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_NO);
    shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_NO);
    assert_int_equal(waiter.waits, 0);
}

static void issue_all(struct shop *shop) {
    for (size_t i = 0; i < SHOP_ELECTIONS; i++) {
        struct store_request request = shop_request(i, 1);
        shop_issue(shop, STORE_RENEWED, &request);
    }
}

static void turn_until_all(struct shop *shop, unsigned answers) {
    for (size_t i = 0; i < SHOP_ELECTIONS; i++) {
        shop_turn(shop, 5 * NS_PER_S, &shop->answers[i], answers);
        assert_int_equal(shop->answers[i], answers);
    }
}

static void one_wait_covers_all_that_came_before(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    waiter.hold_scripts = SHOP_ELECTIONS;
    for (unsigned round = 1; round <= 3; round++) {
        waiter.answer = round == 2 ? ":0\r\n" : ":1\r\n";
        issue_all(shop);
        turn_until_all(shop, round);
        assert_int_equal(waiter.waits, round);
        for (size_t i = 0; i < SHOP_ELECTIONS; i++) {
            assert_int_equal(shop->last[i].reply.outcome,
                             round == 2 ? OUTCOME_UNSURE : OUTCOME_YES);
        }
    }
}

static void say_to_all(struct peer *peer, const char *bytes) {
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_say(peer->connections[i], bytes);
        }
    }
}

/* The connection of the newest request. */
static struct peer_connection *newest;

static bool on_request_noted(struct peer_connection *connection, const redisReply *request) {
    newest = connection;
    return on_request(connection, request);
}

/* A server answers WAIT before all that was sent behind it, and so does this one. */
static void what_comes_behind_needs_the_next_one(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    struct store_request first = shop_request(0, 1);
    struct store_request second = shop_request(1, 1);
    peer_renew(peer, OUTCOME_YES); /* the subscriber is there too by now */
    shop_turn(shop, NS_PER_S, &peer->subscribes, 1);
    peer->before = on_request_noted;
    waiter.answer = NULL;
    shop_issue(shop, STORE_RENEWED, &first);
    shop_turn(shop, NS_PER_S, &waiter.waits, 2);
    assert_int_equal(waiter.waits, 2);
    peer->answer = NULL; /* it reads no further until WAIT is answered */
    unsigned scripts = peer->scripts;
    shop_issue(shop, STORE_RENEWED, &second);
    shop_turn(shop, NS_PER_S, &peer->scripts, scripts + 1);
    shop_turn(shop, 30 * NS_PER_MS, NULL, 0);
    assert_int_equal(waiter.waits, 2);
    assert_int_equal(shop->answers[0], 1);
    peer_say(newest, ":1\r\n" PEER_RENEWED);
    shop_turn(shop, NS_PER_S, &waiter.waits, 3);
    assert_int_equal(waiter.waits, 3);
    assert_int_equal(shop->answers[0], 2);
    assert_int_equal(shop->answers[1], 0);
    peer_say(newest, ":0\r\n");
    shop_turn(shop, NS_PER_S, &shop->answers[1], 1);
    assert_int_equal(shop->last[0].reply.outcome, OUTCOME_YES);
    assert_int_equal(shop->last[1].reply.outcome, OUTCOME_UNSURE);
}

/* The lease counts from the sending of the request, not of WAIT. */
static void the_lease_counts_from_the_request(void **state) {
    struct peer *peer = *state;
    struct shop *shop = peer->shop;
    struct store_request request = shop_request(0, 1);
    peer_renew(peer, OUTCOME_YES);
    peer->before = on_request_noted;
    waiter.answer = NULL;
    shop_issue(shop, STORE_RENEWED, &request);
    shop_turn(shop, NS_PER_S, &waiter.waits, 2);
    int64_t asked_ns = clock_now().boot_ns;
    shop_turn(shop, 50 * NS_PER_MS, NULL, 0);
    peer_say(newest, ":1\r\n");
    shop_turn(shop, NS_PER_S, &shop->answers[0], 2);
    assert_int_equal(shop->last[0].reply.outcome, OUTCOME_YES);
    assert_true(shop->last[0].reply.sent.boot_ns <= asked_ns);
}

static void wrong_answers_to_wait(void **state) {
    struct peer *peer = *state;
    static const struct {
        const char *answer, *text;
        bool kept; /* the connection */
    } cases[] = {
        {"-NOPERM this user has no permissions to run the 'wait' command\r\n", "allow +wait", true},
        {"-ERR unknown command 'WAIT', with args beginning with: '1'\r\n", "WAIT is needed", true},
        {"-ERR WAIT cannot be used with replica instances.\r\n", "replica instances", false},
        {"-UNBLOCKED force unblock from blocking operation\r\n", "UNBLOCKED", false},
        {"+OK\r\n", "a strange answer to WAIT", false},
        {":-1\r\n", "a strange answer to WAIT", false},
        {"*0\r\n", "a strange answer to WAIT", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        waiter.answer = ":1\r\n";
        peer_renew(peer, OUTCOME_YES);
        unsigned accepted = peer->accepted;
        waiter.answer = cases[i].answer;
        const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
        assert_non_null(strstr(event->text, cases[i].text));
        waiter.answer = ":1\r\n";
        peer_renew(peer, OUTCOME_YES);
        assert_int_equal(peer->accepted, accepted + (cases[i].kept ? 0 : 1));
    }
}

static void silence_and_loss_are_unsure(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    request.timeout_ns = 200 * NS_PER_MS;
    peer_renew(peer, OUTCOME_YES);
    unsigned accepted = peer->accepted;
    waiter.answer = NULL;
    const struct store_event *event =
        shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
    waiter.answer = ":1\r\n";
    peer_renew(peer, OUTCOME_YES);
    assert_int_equal(peer->accepted, accepted + 1);

    waiter.answer = NULL;
    unsigned waits = waiter.waits;
    request.timeout_ns = SHOP_TIMEOUT_NS;
    shop_issue(peer->shop, STORE_RENEWED, &request);
    shop_turn(peer->shop, NS_PER_S, &waiter.waits, waits + 1);
    unsigned answers = peer->shop->answers[0];
    peer_hang_up(peer);
    shop_turn(peer->shop, NS_PER_S, &peer->shop->answers[0], answers + 1);
    assert_int_equal(peer->shop->last[0].reply.outcome, OUTCOME_UNSURE);
    waiter.answer = ":1\r\n";
    peer_renew(peer, OUTCOME_YES);
}

static void closes_while_waiting(void **state) {
    struct peer *peer = *state;
    waiter.answer = NULL;
    issue_all(peer->shop);
    shop_turn(peer->shop, NS_PER_S, &waiter.waits, 1);
    shop_close(peer->shop);
    say_to_all(peer, ":1\r\n");
    shop_turn(peer->shop, 30 * NS_PER_MS, NULL, 0);
    assert_int_equal(peer->shop->answers[0], 0);
}

/* What the scripts tell of replicas makes the warnings of a reply. */
static void replicas_make_warnings(void **state) {
    (void)state;
    static const uint32_t both = WARNING_STORE_REPLICATED_ASYNC | WARNING_OVERLAP_POSSIBLE;
    static const struct {
        unsigned wanted, seen, attached;
        uint32_t warnings;
    } cases[] = {
        {0, 0, 0, 0},
        {0, 0, 1, both},
        {0, 0, 2, both},
        {0, 1, 0, WARNING_OVERLAP_POSSIBLE}, /* it was there: it may be a master by now */
        {1, 0, 0, 0},
        {1, 0, 1, 0},                        /* two of two */
        {1, 0, 2, 0},                        /* two of three */
        {1, 0, 3, WARNING_OVERLAP_POSSIBLE}, /* two of four */
        {1, 3, 1, WARNING_OVERLAP_POSSIBLE},
        {2, 0, 3, 0},
        {2, 4, 2, 0}, /* three of five */
        {2, 5, 2, WARNING_OVERLAP_POSSIBLE},
        {100, 10000, 100, WARNING_OVERLAP_POSSIBLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct redis_replicas replicas = {.wanted = cases[i].wanted};
        redis_replicas_heard(&replicas, cases[i].seen);
        assert_int_equal(redis_replicas_warnings(&replicas, cases[i].attached), cases[i].warnings);
        assert_int_equal(redis_replicas_safety(&replicas),
                         cases[i].wanted > 0     ? FAILOVER_ACKNOWLEDGED
                         : cases[i].warnings > 0 ? FAILOVER_ASYNCHRONOUS
                                                 : FAILOVER_NONE);
        /* They do not go by a replica's leaving. */
        assert_int_equal(redis_replicas_warnings(&replicas, 0) & WARNING_OVERLAP_POSSIBLE,
                         cases[i].warnings & WARNING_OVERLAP_POSSIBLE);
    }
}

static void replicas_are_warned_of_by_the_store(void **state) {
    struct peer *peer = *state;
    static const char answer[] = "*6\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n"
                                 "$16\r\n1796157414879123\r\n$7\r\nrun:rep\r\n$1\r\n%c\r\n";
    static char text[256];
    static const struct {
        char replicas;
        uint32_t warnings;
    } rounds[] = {{'1', 0}, {'3', WARNING_OVERLAP_POSSIBLE}, {'0', WARNING_OVERLAP_POSSIBLE}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text, answer, rounds[i].replicas);
        peer->answer = text;
        const struct store_event *event = peer_renew(peer, OUTCOME_YES);
        assert_int_equal(event->reply.warnings, rounds[i].warnings);
        assert_int_equal(event->reply.safety, FAILOVER_ACKNOWLEDGED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WAIT_TEST(yes_waits_for_the_replicas),
        WAIT_TEST(acquires_wait_too),
        WAIT_TEST(an_end_proves_nothing),
        WAIT_TEST(others_are_answered_at_once),
        WAIT_TEST(one_wait_covers_all_that_came_before),
        WAIT_TEST(what_comes_behind_needs_the_next_one),
        WAIT_TEST(the_lease_counts_from_the_request),
        WAIT_TEST(wrong_answers_to_wait),
        WAIT_TEST(silence_and_loss_are_unsure),
        WAIT_TEST(closes_while_waiting),
        cmocka_unit_test(replicas_make_warnings),
        WAIT_TEST(replicas_are_warned_of_by_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
