/* TLS sessions against a server of the same library, all in memory. */
#include "tls_kit.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static struct { struct tls_identity ca, other_ca, server, client, stranger; } ids;

static struct tls_pair pair;

static const char host[] = "redis.example";

static struct tls_plan plan(const char *file, const char *names) {
    struct tls_plan made = {.file = file, .names = names};
    return made;
}

static int make_identities(void **state) {
    (void)state;
    struct tls_plan plans[] = {plan("ca", NULL), plan("other-ca", NULL),
                               plan("server", "DNS:redis.example,IP:127.0.0.1"),
                               plan("client", NULL), plan("stranger", NULL)};
    ids.ca = tls_kit_issue(NULL, &plans[0]);
    ids.other_ca = tls_kit_issue(NULL, &plans[1]);
    ids.server = tls_kit_issue(&ids.ca, &plans[2]);
    ids.client = tls_kit_issue(&ids.ca, &plans[3]);
    ids.stranger = tls_kit_issue(&ids.other_ca, &plans[4]);
    return 0;
}

static int free_identities(void **state) {
    (void)state;
    struct tls_identity *all[] = {&ids.ca, &ids.other_ca, &ids.server, &ids.client, &ids.stranger};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tls_kit_free(all[i]);
    }
    tls_kit_finish();
    return 0;
}

static struct store_tls trusting(const struct tls_identity *ca, const struct tls_identity *client) {
    struct store_tls files = {.paths = {[STORE_TLS_CA] = ca->certificate_path}};
    if (client != NULL) {
        files.paths[STORE_TLS_CERTIFICATE] = client->certificate_path;
        files.paths[STORE_TLS_KEY] = client->key_path;
    }
    return files;
}

static void begin(const struct tls_identity *server, int version,
                  const struct tls_identity *client_ca, const struct tls_identity *client) {
    struct store_tls files = trusting(&ids.ca, client);
    tls_pair_begin(&pair, server, version, client_ca);
    tls_pair_connect(&pair, &files, host);
}

static void begin_open(int version) {
    begin(&ids.server, version, NULL, NULL);
    tls_pair_run(&pair);
    assert_true(pair.opened);
    assert_int_equal(pair.last, REDIS_TLS_WAIT);
}

static void assert_broken(const char *word) {
    assert_int_equal(pair.last, REDIS_TLS_BROKEN);
    const char *problem = redis_tls_problem(pair.session);
    if (strstr(problem, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, problem);
    }
    assert_true(strlen(problem) < REDIS_TLS_TEXT - 1); /* not cut */
    assert_false(redis_tls_write(pair.session, "x", 1));
    size_t pending = redis_tls_pending(pair.session); /* an alert, where that makes sense */
    redis_tls_close(pair.session);
    assert_int_equal(redis_tls_pending(pair.session), pending);
    assert_string_equal(redis_tls_ended(pair.session, "the end"), problem);
}

static void assert_got(const char *text) {
    assert_int_equal(pair.got_size, strlen(text));
    assert_memory_equal(pair.got, text, strlen(text));
    pair.got_size = 0;
}

static void bytes_may_come_in_any_pieces(void **state) {
    (void)state;
    static const size_t chunks[] = {1, 2, 5, 77, REDIS_TLS_FEED_MAX};
    static char large[40000];
    char echo[64];
    memset(large, 'x', sizeof large);
    for (size_t i = 0; i < 2 * sizeof chunks / sizeof chunks[0]; i++) {
        struct store_tls files = trusting(&ids.ca, NULL);
        tls_pair_begin(&pair, &ids.server, versions[i % 2], NULL);
        pair.chunk = chunks[i / 2];
        tls_pair_connect(&pair, &files, host);
        assert_false(pair.opened);
        assert_false(redis_tls_write(pair.session, "early", 5)); /* never before the handshake */
        tls_pair_run(&pair);
        assert_true(pair.opened);
        assert_true(redis_tls_write(pair.session, "PING\r\n", 6));
        tls_pair_run(&pair);
        assert_int_equal(SSL_read(pair.server, echo, sizeof echo), 6);
        assert_memory_equal(echo, "PING\r\n", 6);
        tls_pair_serve(&pair, "+PONG\r\n", 7);
        tls_pair_run(&pair);
        assert_got("+PONG\r\n");
        tls_pair_serve(&pair, large, sizeof large);
        tls_pair_run(&pair);
        assert_int_equal(pair.got_size, sizeof large);
        assert_int_equal(pair.last, REDIS_TLS_WAIT);
        tls_pair_end(&pair);
    }
}

static void what_is_sent_is_encrypted(void **state) {
    (void)state;
    static char bytes[1 << 16];
    begin_open(TLS1_3_VERSION);
    assert_true(redis_tls_write(pair.session, "AUTH sEcReT\r\n", 13));
    size_t size = redis_tls_pending(pair.session);
    redis_tls_take(pair.session, bytes, size);
    assert_true(size > 13);
    assert_null(memmem(bytes, size, "sEcReT", 6));
    tls_pair_end(&pair);
}

static void names_are_verified(void **state) {
    (void)state;
    static const struct {
        const char *names, *host;
        bool good;
    } cases[] = {
        {"DNS:redis.example", "redis.example", true},
        {"DNS:redis.example", "Redis.EXAMPLE.", true},
        {"DNS:a.example,DNS:redis.example", "redis.example", true},
        {"DNS:*.example.org", "redis.example.org", true},
        {"DNS:*.example.org", "a.redis.example.org", false},
        {"DNS:r*.example.org", "redis.example.org", false},
        {"DNS:redis.example", "other.example", false},
        {"DNS:redis.example", "redis.example.other", false},
        {"DNS:redis.example", "edis.example", false},
        {"DNS:127.0.0.1", "127.0.0.1", false}, /* an address is no name */
        {"IP:127.0.0.1", "127.0.0.1", true},
        {"IP:127.0.0.1", "127.0.0.2", false},
        {"IP:127.0.0.1", "localhost", false},
        {"IP:::1", "::1", true},
        {"IP:::1", "0:0:0:0:0:0:0:1", true},
        {"IP:fe80::1", "fe80::1%eth0", true},
        {"IP:fe80::2", "fe80::1%eth0", false},
    };
    struct store_tls files = trusting(&ids.ca, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tls_plan named = plan("named", cases[i].names);
        struct tls_identity server = tls_kit_issue(&ids.ca, &named);
        tls_pair_begin(&pair, &server, 0, NULL);
        tls_pair_connect(&pair, &files, cases[i].host);
        tls_pair_run(&pair);
        if (pair.opened != cases[i].good) {
            fail_msg("%s for %s", cases[i].names, cases[i].host);
        }
        if (!cases[i].good) {
            assert_broken("not for");
            assert_non_null(strstr(redis_tls_problem(pair.session), cases[i].host));
        }
        /* The server is told which name was asked for; an address is none. */
        const char *asked = SSL_get_servername(pair.server, TLSEXT_NAMETYPE_host_name);
        bool address = strspn(cases[i].host, "0123456789.") == strlen(cases[i].host) ||
                       strchr(cases[i].host, ':') != NULL;
        assert_true((asked == NULL) == address);
        tls_pair_end(&pair);
        tls_kit_free(&server);
    }
}

static void a_host_that_nothing_can_be_for_is_refused(void **state) {
    (void)state;
    static const char *const hosts[] = {"", ".", "%eth0"};
    struct store_tls files = trusting(&ids.ca, NULL);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        tls_pair_begin(&pair, &ids.server, 0, NULL);
        tls_pair_connect(&pair, &files, hosts[i]);
        assert_broken("no certificate can be for");
        tls_pair_end(&pair);
    }
}

static void chains_are_verified(void **state) {
    (void)state;
    static const struct {
        int from_s, till_s;
        const char *word;
    } times[] = {{-7200, -3600, "expired"}, {3600, 7200, "not valid yet"}};
    for (size_t i = 0; i < 4; i++) {
        struct tls_plan timed = plan("timed", "DNS:redis.example");
        timed.from_s = times[i / 2].from_s;
        timed.till_s = times[i / 2].till_s;
        struct tls_identity server = tls_kit_issue(&ids.ca, &timed);
        begin(&server, versions[i % 2], NULL, NULL);
        tls_pair_run(&pair);
        assert_false(pair.opened);
        assert_broken(times[i / 2].word);
        assert_false(SSL_is_init_finished(pair.server));
        tls_pair_end(&pair);
        tls_kit_free(&server);
    }
    for (size_t i = 0; i < 4; i++) {
        struct tls_plan named = plan("foreign", "DNS:redis.example");
        struct tls_identity server = tls_kit_issue(i < 2 ? &ids.other_ca : NULL, &named);
        begin(&server, versions[i % 2], NULL, NULL);
        tls_pair_run(&pair);
        assert_false(pair.opened);
        assert_broken("--tls-ca");
        tls_pair_end(&pair);
        tls_kit_free(&server);
    }
}

/* In TLS 1.3 the server refuses only after the handshake is over for us. */
static void client_certificates_are_shown(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin(&ids.server, versions[i], &ids.ca, &ids.client);
        tls_pair_run(&pair);
        assert_int_equal(pair.last, REDIS_TLS_WAIT);
        assert_true(pair.opened && SSL_is_init_finished(pair.server));
        tls_pair_end(&pair);

        begin(&ids.server, versions[i], &ids.ca, NULL);
        tls_pair_run(&pair);
        assert_broken("--tls-cert and --tls-key");
        tls_pair_end(&pair);

        begin(&ids.server, versions[i], &ids.ca, &ids.stranger);
        tls_pair_run(&pair);
        assert_broken("refused the client certificate (unknown CA)");
        tls_pair_end(&pair);
    }
}

/* The alert may be lost with the connection. */
static void a_connection_that_ends_early_is_explained(void **state) {
    (void)state;
    static const char why[] = "connection reset by peer";
    begin(&ids.server, 0, NULL, NULL);
    assert_non_null(strstr(redis_tls_ended(pair.session, why), "does it speak TLS"));
    tls_pair_end(&pair);

    begin_open(TLS1_3_VERSION);
    assert_string_equal(redis_tls_ended(pair.session, why), why);
    tls_pair_end(&pair);

    for (int shown = 0; shown < 2; shown++) {
        static char bytes[1 << 16];
        begin(&ids.server, TLS1_3_VERSION, &ids.ca, shown == 1 ? &ids.client : NULL);
        size_t size = redis_tls_pending(pair.session);
        redis_tls_take(pair.session, bytes, size);
        assert_int_equal(BIO_write(pair.server_in, bytes, (int)size), (int)size);
        (void)SSL_do_handshake(pair.server);
        int answer = BIO_read(pair.server_out, bytes, sizeof bytes);
        tls_pair_feed(&pair, bytes, (size_t)answer);
        assert_true(pair.opened);
        const char *text = redis_tls_ended(pair.session, why);
        assert_non_null(strstr(text, shown == 1 ? "does it take our certificate" : "--tls-cert"));
        tls_pair_end(&pair);
    }
}

static void what_is_not_tls_is_told(void **state) {
    (void)state;
    static const char *const answers[] = {"-ERR unknown command '\x16', with args\r\n",
                                          "HTTP/1.1 400 Bad Request\r\n\r\n",
                                          "+OK\r\n$3\r\nabc\r\n", "\x02\x01garbage of any kind"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        begin(&ids.server, 0, NULL, NULL);
        tls_pair_feed(&pair, answers[i], strlen(answers[i]));
        assert_false(pair.opened);
        assert_broken("no TLS is spoken there");
        tls_pair_end(&pair);
    }
}

/* Each byte of the server's side, changed or missing, at any stage: nothing is taken for good. */
static void damaged_bytes_open_nothing(void **state) {
    (void)state;
    static char bytes[1 << 16];
    for (size_t at = 0; at < 4000; at += 37) {
        begin(&ids.server, TLS1_3_VERSION, NULL, NULL);
        size_t size = redis_tls_pending(pair.session);
        redis_tls_take(pair.session, bytes, size);
        assert_int_equal(BIO_write(pair.server_in, bytes, (int)size), (int)size);
        (void)SSL_do_handshake(pair.server);
        size = (size_t)BIO_read(pair.server_out, bytes, sizeof bytes);
        if (at >= size) {
            tls_pair_end(&pair);
            break;
        }
        bytes[at] = (char)(bytes[at] ^ 0x55);
        tls_pair_feed(&pair, bytes, size);
        if (pair.opened) {
            fail_msg("opened with byte %zu changed", at);
        }
        assert_true(pair.last == REDIS_TLS_BROKEN || pair.last == REDIS_TLS_WAIT);
        tls_pair_end(&pair);
    }
}

static void damaged_data_ends_the_session(void **state) {
    (void)state;
    char bytes[256];
    for (size_t i = 0; i < 2; i++) {
        begin_open(versions[i]);
        tls_pair_serve(&pair, "+OK\r\n", 5);
        int size = BIO_read(pair.server_out, bytes, sizeof bytes);
        bytes[size - 1] = (char)(bytes[size - 1] ^ 1);
        tls_pair_feed(&pair, bytes, (size_t)size);
        assert_int_equal(pair.got_size, 0);
        assert_broken("TLS broke");
        tls_pair_end(&pair);
    }
}

static void old_versions_are_refused(void **state) {
    (void)state;
    begin(&ids.server, TLS1_1_VERSION, NULL, NULL);
    SSL_CTX_set_cipher_list(pair.server_context, "ALL:@SECLEVEL=0");
    SSL_set_cipher_list(pair.server, "ALL:@SECLEVEL=0");
    tls_pair_run(&pair);
    assert_false(pair.opened);
    assert_broken("1.2 or later");
    tls_pair_end(&pair);
}

static void renegotiation_is_refused(void **state) {
    (void)state;
    begin_open(TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(pair.server), 1);
    (void)SSL_do_handshake(pair.server);
    ERR_clear_error();
    char alert[256];
    int size = BIO_read(pair.server_out, alert, sizeof alert);
    tls_pair_feed(&pair, alert, (size_t)size);
    assert_int_equal(pair.last, REDIS_TLS_WAIT); /* it goes on, and has said no */
    size_t answer = redis_tls_pending(pair.session);
    assert_true(answer > 0 && answer < 64);
    tls_pair_end(&pair);
}

static void keys_may_change(void **state) {
    (void)state;
    begin_open(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(pair.server, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_pair_serve(&pair, "+OK\r\n", 5);
        tls_pair_run(&pair);
        assert_got("+OK\r\n");
        assert_true(redis_tls_write(pair.session, "PING\r\n", 6));
        tls_pair_run(&pair);
        char echo[16];
        assert_int_equal(SSL_read(pair.server, echo, sizeof echo), 6);
    }
    tls_pair_end(&pair);
}

static void talk_without_data_is_bounded(void **state) {
    (void)state;
    begin_open(TLS1_3_VERSION);
    for (int i = 0; i < 3000 && pair.last == REDIS_TLS_WAIT; i++) {
        assert_int_equal(SSL_new_session_ticket(pair.server), 1);
        (void)SSL_do_handshake(pair.server);
        tls_pair_run(&pair);
    }
    assert_broken("without end");
    tls_pair_end(&pair);
}

static void ends_are_told_to_both(void **state) {
    (void)state;
    char byte;
    for (size_t i = 0; i < 2; i++) {
        begin_open(versions[i]);
        redis_tls_close(pair.session);
        tls_pair_run(&pair);
        assert_int_equal(SSL_get_shutdown(pair.server), SSL_RECEIVED_SHUTDOWN);
        assert_int_equal(SSL_read(pair.server, &byte, 1), 0);
        assert_int_equal(SSL_get_error(pair.server, 0), SSL_ERROR_ZERO_RETURN);
        tls_pair_end(&pair);

        begin_open(versions[i]);
        tls_pair_serve(&pair, "+OK\r\n", 5);
        (void)SSL_shutdown(pair.server);
        tls_pair_run(&pair);
        assert_got("+OK\r\n");
        assert_int_equal(pair.last, REDIS_TLS_CLOSED);
        tls_pair_end(&pair);
    }
    begin(&ids.server, 0, NULL, NULL);
    size_t hello = redis_tls_pending(pair.session);
    redis_tls_close(pair.session); /* nothing to say goodbye to yet */
    assert_int_equal(redis_tls_pending(pair.session), hello);
    tls_pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_may_come_in_any_pieces),
        cmocka_unit_test(what_is_sent_is_encrypted),
        cmocka_unit_test(names_are_verified),
        cmocka_unit_test(a_host_that_nothing_can_be_for_is_refused),
        cmocka_unit_test(chains_are_verified),
        cmocka_unit_test(client_certificates_are_shown),
        cmocka_unit_test(a_connection_that_ends_early_is_explained),
        cmocka_unit_test(what_is_not_tls_is_told),
        cmocka_unit_test(damaged_bytes_open_nothing),
        cmocka_unit_test(damaged_data_ends_the_session),
        cmocka_unit_test(old_versions_are_refused),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(keys_may_change),
        cmocka_unit_test(talk_without_data_is_bounded),
        cmocka_unit_test(ends_are_told_to_both),
    };
    return cmocka_run_group_tests(tests, make_identities, free_identities);
}
