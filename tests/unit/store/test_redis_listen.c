/* The subscriber: what it waits for, and what it believes. */
#include "redis_store_kit.h"

static const char granted[] =
    "*9\r\n$3\r\nyes\r\n$1\r\n7\r\n$5\r\n10000\r\n$16\r\n1796157414879123\r\n$7\r\nrun:rep\r\n"
    "$1\r\n0\r\n$4\r\nnone\r\n$9\r\nno-record\r\n$1\r\n0\r\n";

static void first_listens_then_tries(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer->answer = granted;
    shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_YES);
    assert_int_equal(peer->subscribes, 1);
    assert_int_equal(peer->scripts_before_subscribe, 0);
}

static void does_not_need_to_listen(void **state) {
    struct peer *peer = *state;
    struct store_request request = shop_request(0, 1);
    peer->answer = granted;
    peer->mute_subscribe = true;
    request.timeout_ns = 800 * NS_PER_MS;
    int64_t start_ns = clock_now().boot_ns;
    shop_expect(peer->shop, STORE_ACQUIRED, &request, OUTCOME_YES);
    int64_t took_ns = clock_now().boot_ns - start_ns;
    assert_true(took_ns >= 190 * NS_PER_MS && took_ns < 500 * NS_PER_MS);
    /* What is held already does not wait. */
    peer_hang_up(peer);
    peer->answer = PEER_RENEWED;
    start_ns = clock_now().boot_ns;
    request.timeout_ns = SHOP_TIMEOUT_NS;
    if (shop_do(peer->shop, STORE_RENEWED, &request)->reply.outcome != OUTCOME_YES) {
        shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_YES);
    }
    assert_true(clock_now().boot_ns - start_ns < 300 * NS_PER_MS);
}

static void messages_are_read_strictly(void **state) {
    struct peer *peer = *state;
    peer_renew(peer, OUTCOME_YES);
    shop_turn(peer->shop, NS_PER_S, &peer->subscribes, 1);
    shop_turn(peer->shop, 50 * NS_PER_MS, NULL, 0);
    static const char *const strange[] = {
        "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$7\r\n7 clean\r\n",
        "*3\r\n$7\r\nmessage\r\n$24\r\ngavel:{ns/two}:released?\r\n$7\r\n7 clean\r\n",
        "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released\r\n$5\r\nclean\r\n",
        "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released\r\n$8\r\n7 clean \r\n",
        "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released\r\n$11\r\n7 clean 00f\r\n",
        "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released\r\n$40\r\n"
        "7 clean 00112233445566778899AABBCCDDEEFF\r\n",
    };
    unsigned accepted = peer->accepted;
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        for (size_t s = 0; peer->connections[i] != NULL && s < sizeof strange / sizeof strange[0];
             s++) {
            peer_say(peer->connections[i], strange[s]);
        }
    }
    shop_turn(peer->shop, 200 * NS_PER_MS, NULL, 0);
    assert_int_equal(peer->shop->wakes, 0);
    /* The connection for requests is not for messages: it was dropped. The subscriber's lives. */
    assert_int_equal(peer->accepted, accepted + 1);
    peer_renew(peer, OUTCOME_YES);
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_say(peer->connections[i], "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released"
                                           "\r\n$7\r\n7 clean\r\n");
        }
    }
    shop_turn(peer->shop, NS_PER_S, &peer->shop->wakes, 1);
    assert_int_equal(peer->shop->wakes, 1);
    assert_true(peer->shop->wake_clean);
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (peer->connections[i] != NULL) {
            peer_say(peer->connections[i],
                     "*3\r\n$7\r\nmessage\r\n$23\r\ngavel:{ns/two}:released"
                     "\r\n$42\r\n7 unclean 00112233445566778899aabbccddeeff\r\n");
        }
    }
    shop_turn(peer->shop, NS_PER_S, &peer->shop->wakes, 2);
    assert_int_equal(peer->shop->wakes, 2);
    assert_false(peer->shop->wake_clean);
    for (int i = 0; i < NONCE_BYTES; i++) {
        assert_int_equal(peer->shop->wake_nonce[i], i * 0x11);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PEER_TEST(first_listens_then_tries),
        PEER_TEST(does_not_need_to_listen),
        PEER_TEST(messages_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
