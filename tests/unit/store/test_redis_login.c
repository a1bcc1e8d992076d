/* User and password: refused, changed, tried again. */
#include "redis_store_kit.h"

static void refused_passwords_are_not_hammered(void **state) {
    struct peer *peer = *state;
    peer->shop->secrets.user = "gavel";
    peer->shop->secrets.password = "sEcReT";
    peer->auth = "-ERR unknown command 'AUTH', with args beginning with: 'gavel' 'sEcReT'\r\n";
    int64_t start_ns = clock_now().boot_ns;
    const struct store_event *event = peer_renew(peer, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    assert_null(strstr(event->text, "sEcReT"));
    assert_null(strstr(peer->shop->status.problem, "sEcReT"));
    peer->auth = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    struct store_request request = shop_request(0, 1);
    while (clock_now().boot_ns - start_ns < 900 * NS_PER_MS) {
        request.timeout_ns = 100 * NS_PER_MS;
        shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
    }
    assert_true(peer->auths <= 2); /* one by each of the two connections */

    peer->auth = NULL; /* the password is right now */
    peer_renew_until_yes(peer);
    assert_true(clock_now().boot_ns - start_ns < 2500 * NS_PER_MS);
}

static unsigned refreshed;

static void on_refresh(void *context) {
    struct peer *peer = context;
    refreshed++;
    peer->shop->secrets.generation += strcmp(peer->shop->secrets.password, "fresh") != 0;
    peer->shop->secrets.password = "fresh";
}

/* A file may hold another password by now: it is looked at when the old one is refused, and only
 * then. */
static void refused_passwords_are_read_again(void **state) {
    struct peer *peer = *state;
    refreshed = 0;
    peer->shop->secrets =
        (struct store_secrets){.password = "stale", .refresh = on_refresh, .context = peer};
    peer_renew(peer, OUTCOME_YES);
    peer_hang_up(peer);
    peer_renew_until_yes(peer);
    assert_int_equal(refreshed, 0);

    static const char *const errors[] = {"-NOAUTH Authentication required.\r\n",
                                         "-WRONGPASS invalid username-password pair\r\n"};
    for (size_t i = 0; i < 2; i++) {
        unsigned before = refreshed;
        peer->answer = errors[i]; /* on a connection that was good */
        peer_renew(peer, OUTCOME_UNSURE);
        assert_int_equal(refreshed, before);
        peer->answer = PEER_RENEWED;
        peer_renew_until_yes(peer);
        assert_int_equal(refreshed, before + 1);
        assert_string_equal(peer->shop->secrets.password, "fresh");
    }
    peer->auth = "-WRONGPASS invalid username-password pair\r\n"; /* on a new one */
    peer_hang_up(peer);
    unsigned before = refreshed;
    shop_turn(peer->shop, 5 * NS_PER_S, &refreshed, before + 1);
    assert_true(refreshed > before);
    peer->auth = NULL;
    peer_renew_until_yes(peer);
    peer->shop->secrets = (struct store_secrets){.user = NULL};
}

/* A server that takes the password and then refuses what is asked is not asked at once again. */
static void refusals_after_a_login_are_not_hammered(void **state) {
    struct peer *peer = *state;
    peer->answer = "-NOAUTH Authentication required.\r\n";
    struct store_request request = shop_request(0, 1);
    int64_t start_ns = clock_now().boot_ns;
    request.timeout_ns = 100 * NS_PER_MS;
    while (clock_now().boot_ns - start_ns < 800 * NS_PER_MS) {
        shop_expect(peer->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
    }
    assert_int_equal(peer->scripts, 1);
}

static const char *right_password;

static bool check_password(struct peer_connection *connection, const redisReply *request) {
    if (strcmp(request->element[0]->str, "AUTH") != 0) {
        return false;
    }
    bool right = strcmp(request->element[request->elements - 1]->str, right_password) == 0;
    peer_say(connection, right ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n");
    return true;
}

/* Another password than the one that was refused is tried in the same attempt, once. */
static void another_password_is_tried_at_once(void **state) {
    struct peer *peer = *state;
    refreshed = 0;
    peer->shop->secrets =
        (struct store_secrets){.password = "stale", .refresh = on_refresh, .context = peer};
    right_password = "fresh";
    peer->before = check_password;
    peer_renew(peer, OUTCOME_YES); /* the first request, without a doubt in between */
    assert_true(refreshed >= 1);

    right_password = "yet another";
    peer->shop->secrets.password = "stale";
    peer_hang_up(peer);
    unsigned auths = peer->auths;
    peer_renew(peer, OUTCOME_UNSURE);
    assert_true(peer->auths - auths <= 4); /* two by each of the two connections */
    peer->before = NULL;
    peer->shop->secrets = (struct store_secrets){.user = NULL};
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PEER_TEST(refused_passwords_are_not_hammered),
        PEER_TEST(refused_passwords_are_read_again),
        PEER_TEST(refusals_after_a_login_are_not_hammered),
        PEER_TEST(another_password_is_tried_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
