/* What is asked on a new connection: which server this is, and the way out where it is not one. */
#include "redis_store_kit.h"

static struct {
    const char *server; /* what INFO server says */
    const char *memory;
    bool hang_up_on_role;
} told;

static bool say_bulk(struct peer_connection *connection, const char *text) {
    char bytes[1024];
    snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    peer_say(connection, bytes);
    return true;
}

static bool on_request(struct peer_connection *connection, const redisReply *request) {
    const char *name = request->element[0]->str;
    if (strcmp(name, "ROLE") == 0 && told.hang_up_on_role) {
        peer_drop(connection);
        return true;
    }
    if (strcmp(name, "INFO") != 0) {
        return false;
    }
    bool server = strcmp(request->element[1]->str, "server") == 0;
    const char *text = server ? told.server : told.memory;
    return text != NULL && say_bulk(connection, text);
}

static int begin(void **state) {
    int result = peer_test_begin(state);
    struct peer *peer = *state;
    memset(&told, 0, sizeof told);
    peer->before = on_request;
    return result;
}

#define HANDSHAKE_TEST(function) cmocka_unit_test_setup_teardown((function), begin, peer_test_end)

/* The next connection; whatever was open is closed. */
static const struct store_event *connect_anew(struct peer *peer, enum outcome outcome) {
    struct store_request request = shop_request(0, 1);
    shop_close(peer->shop);
    peer_hang_up(peer);
    shop_open(peer->shop);
    return shop_expect(peer->shop, STORE_RENEWED, &request, outcome);
}

static void the_version_is_read(void **state) {
    struct peer *peer = *state;
    static const struct {
        const char *server, *version;
    } cases[] = {
        {"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n", "redis 7.0.15"},
        {"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n",
         "valkey 8.1.1"},
        {"# Server\r\nredis_version:4.0.0\r\n", "redis 4.0.0"},
        {"# Server\r\nredis_version:255.255.255\r\n", "redis 255.255.255"},
        {"# Server\r\nredis_version:7\x01\xff\r\n", "redis 7??"},
        {"# Server\r\nos:Linux\r\n", ""},
        {"", ""},
        {NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        told.server = cases[i].server;
        connect_anew(peer, OUTCOME_YES);
        assert_string_equal(peer->shop->status.version, cases[i].version);
    }
}

static void old_servers_are_refused(void **state) {
    struct peer *peer = *state;
    static const char *const versions[] = {"3.2.12", "2.8.24", "0", "-1", "x"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "# Server\r\nredis_version:%s\r\n", versions[i]);
        told.server = text;
        unsigned scripts = peer->scripts;
        const struct store_event *event = connect_anew(peer, OUTCOME_UNSURE);
        snprintf(text, sizeof text, "Redis %s is too old: version 4 or later", versions[i]);
        assert_non_null(strstr(event->text, text));
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
        assert_int_equal(peer->scripts, scripts); /* nothing is asked of it */
    }
}

static void what_it_throws_away_is_read(void **state) {
    struct peer *peer = *state;
    static const struct {
        const char *memory;
        uint32_t warnings;
    } cases[] = {
        {"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", 0},
        {"# Memory\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n", WARNING_EVICTION_POLICY},
        {"# Memory\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n", 0},
        {"# Memory\r\nmaxmemory:100\r\n", 0},
        {"maxmemory_policy:allkeys-lru\r\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        told.memory = cases[i].memory;
        assert_int_equal(connect_anew(peer, OUTCOME_YES)->reply.warnings, cases[i].warnings);
    }
}

static void others_than_a_master_are_told_the_way_out(void **state) {
    struct peer *peer = *state;
    static const struct {
        const char *role, *text;
    } cases[] = {
        {"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n",
         "a replica of 127.0.0.1:6379, not a master: use that one, or Sentinel"},
        {"*1\r\n$5\r\nslave\r\n", "a replica of ?:0, not a master"},
        {"*2\r\n$8\r\nsentinel\r\n*0\r\n", "this is a Sentinel: use redis+sentinel://127.0.0.1:"},
        {"*1\r\n$8\r\nsentinel\r\n", "/MASTER"},
        {"*2\r\n$8\r\nsentinel\r\n*1\r\n:1\r\n", "/MASTER"},
        {"*2\r\n$8\r\nsentinel\r\n*2\r\n$4\r\nmine\r\n$5\r\nother\r\n", "/mine"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        peer->role = cases[i].role;
        const struct store_event *event = connect_anew(peer, OUTCOME_UNSURE);
        assert_non_null(strstr(event->text, cases[i].text));
        assert_int_equal(event->reply.reason, REASON_STORE_REFUSED);
    }
    peer->role = NULL;
    told.hang_up_on_role = true; /* as some proxies do */
    assert_non_null(strstr(connect_anew(peer, OUTCOME_UNSURE)->text, "a proxy without ROLE"));
    assert_int_equal(peer->scripts, 0);
}

/* A password that is refused says less than the role of who refuses it. */
static void a_sentinel_that_knows_no_password_is_told_as_such(void **state) {
    struct peer *peer = *state;
    peer->shop->secrets.password = "sEcReT";
    peer->auth = "-ERR AUTH <password> called without any password configured for the default "
                 "user. Are you sure your configuration is correct?\r\n";
    peer->role = "*2\r\n$8\r\nsentinel\r\n*1\r\n$4\r\nmine\r\n";
    const struct store_event *event = connect_anew(peer, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "this is a Sentinel"));

    peer->role = NULL;
    event = connect_anew(peer, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "no password configured"));
    told.hang_up_on_role = true;
    event = connect_anew(peer, OUTCOME_UNSURE);
    assert_non_null(strstr(event->text, "no password configured"));
    assert_null(strstr(event->text, "sEcReT"));
    assert_int_equal(peer->scripts, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        HANDSHAKE_TEST(the_version_is_read),
        HANDSHAKE_TEST(old_servers_are_refused),
        HANDSHAKE_TEST(what_it_throws_away_is_read),
        HANDSHAKE_TEST(others_than_a_master_are_told_the_way_out),
        HANDSHAKE_TEST(a_sentinel_that_knows_no_password_is_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
