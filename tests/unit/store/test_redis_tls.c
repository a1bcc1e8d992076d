/* TLS sessions against a server of the same library, all in memory. */
#include "tls_test.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void assert_got(const char *text) {
    assert_int_equal(tls_pair.got_size, strlen(text));
    assert_memory_equal(tls_pair.got, text, strlen(text));
    tls_pair.got_size = 0;
}

static void bytes_may_come_in_any_pieces(void **state) {
    (void)state;
    static const size_t chunks[] = {1, 2, 5, 77, REDIS_TLS_FEED_MAX};
    static char large[40000];
    char echo[64];
    memset(large, 'x', sizeof large);
    for (size_t i = 0; i < 2 * sizeof chunks / sizeof chunks[0]; i++) {
        struct store_tls files = tls_test_trust(&tls_ids.ca, NULL);
        tls_pair_begin(&tls_pair, &tls_ids.server, versions[i % 2], NULL);
        tls_pair.chunk = chunks[i / 2];
        tls_pair_connect(&tls_pair, &files, TLS_TEST_HOST);
        assert_false(tls_pair.opened);
        assert_false(
            redis_tls_write(tls_pair.session, "early", 5)); /* never before the handshake */
        tls_pair_run(&tls_pair);
        assert_true(tls_pair.opened);
        assert_true(redis_tls_write(tls_pair.session, "PING\r\n", 6));
        tls_pair_run(&tls_pair);
        assert_int_equal(SSL_read(tls_pair.server, echo, sizeof echo), 6);
        assert_memory_equal(echo, "PING\r\n", 6);
        tls_pair_serve(&tls_pair, "+PONG\r\n", 7);
        tls_pair_run(&tls_pair);
        assert_got("+PONG\r\n");
        tls_pair_serve(&tls_pair, large, sizeof large);
        tls_pair_run(&tls_pair);
        assert_int_equal(tls_pair.got_size, sizeof large);
        assert_int_equal(tls_pair.last, REDIS_TLS_WAIT);
        tls_pair_end(&tls_pair);
    }
}

static void what_is_sent_is_encrypted(void **state) {
    (void)state;
    static char bytes[1 << 16];
    tls_test_open(TLS1_3_VERSION);
    assert_true(redis_tls_write(tls_pair.session, "AUTH sEcReT\r\n", 13));
    size_t size = redis_tls_pending(tls_pair.session);
    redis_tls_take(tls_pair.session, bytes, size);
    assert_true(size > 13);
    assert_null(memmem(bytes, size, "sEcReT", 6));
    tls_pair_end(&tls_pair);
}

/* In TLS 1.3 the server refuses only after the handshake is over for us. */
static void client_certificates_are_shown(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tls_test_begin(&tls_ids.server, versions[i], &tls_ids.ca, &tls_ids.client);
        tls_pair_run(&tls_pair);
        assert_int_equal(tls_pair.last, REDIS_TLS_WAIT);
        assert_true(tls_pair.opened && SSL_is_init_finished(tls_pair.server));
        tls_pair_end(&tls_pair);

        tls_test_begin(&tls_ids.server, versions[i], &tls_ids.ca, NULL);
        tls_pair_run(&tls_pair);
        tls_test_broken("--tls-cert and --tls-key");
        tls_pair_end(&tls_pair);

        tls_test_begin(&tls_ids.server, versions[i], &tls_ids.ca, &tls_ids.stranger);
        tls_pair_run(&tls_pair);
        tls_test_broken("refused the client certificate (unknown CA)");
        tls_pair_end(&tls_pair);
    }
}

/* The alert may be lost with the connection. */
static void a_connection_that_ends_early_is_explained(void **state) {
    (void)state;
    static const char why[] = "connection reset by peer";
    tls_test_begin(&tls_ids.server, 0, NULL, NULL);
    assert_non_null(strstr(redis_tls_ended(tls_pair.session, why), "does it speak TLS"));
    tls_pair_end(&tls_pair);

    tls_test_open(TLS1_3_VERSION);
    assert_string_equal(redis_tls_ended(tls_pair.session, why), why);
    tls_pair_end(&tls_pair);

    for (int shown = 0; shown < 2; shown++) {
        static char bytes[1 << 16];
        tls_test_begin(&tls_ids.server, TLS1_3_VERSION, &tls_ids.ca,
                       shown == 1 ? &tls_ids.client : NULL);
        size_t size = redis_tls_pending(tls_pair.session);
        redis_tls_take(tls_pair.session, bytes, size);
        assert_int_equal(BIO_write(tls_pair.server_in, bytes, (int)size), (int)size);
        (void)SSL_do_handshake(tls_pair.server);
        int answer = BIO_read(tls_pair.server_out, bytes, sizeof bytes);
        tls_pair_feed(&tls_pair, bytes, (size_t)answer);
        assert_true(tls_pair.opened);
        const char *text = redis_tls_ended(tls_pair.session, why);
        assert_non_null(strstr(text, shown == 1 ? "does it take our certificate" : "--tls-cert"));
        tls_pair_end(&tls_pair);
    }
}

static void what_is_not_tls_is_told(void **state) {
    (void)state;
    static const char *const answers[] = {"-ERR unknown command '\x16', with args\r\n",
                                          "HTTP/1.1 400 Bad Request\r\n\r\n",
                                          "+OK\r\n$3\r\nabc\r\n", "\x02\x01garbage of any kind"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        tls_test_begin(&tls_ids.server, 0, NULL, NULL);
        tls_pair_feed(&tls_pair, answers[i], strlen(answers[i]));
        assert_false(tls_pair.opened);
        tls_test_broken("no TLS is spoken there");
        tls_pair_end(&tls_pair);
    }
}

/* Each byte of the server's side, changed or missing, at any stage: nothing is taken for good. */
static void damaged_bytes_open_nothing(void **state) {
    (void)state;
    static char bytes[1 << 16];
    for (size_t at = 0; at < 4000; at += 37) {
        tls_test_begin(&tls_ids.server, TLS1_3_VERSION, NULL, NULL);
        size_t size = redis_tls_pending(tls_pair.session);
        redis_tls_take(tls_pair.session, bytes, size);
        assert_int_equal(BIO_write(tls_pair.server_in, bytes, (int)size), (int)size);
        (void)SSL_do_handshake(tls_pair.server);
        size = (size_t)BIO_read(tls_pair.server_out, bytes, sizeof bytes);
        if (at >= size) {
            tls_pair_end(&tls_pair);
            break;
        }
        bytes[at] = (char)(bytes[at] ^ 0x55);
        tls_pair_feed(&tls_pair, bytes, size);
        if (tls_pair.opened) {
            fail_msg("opened with byte %zu changed", at);
        }
        assert_true(tls_pair.last == REDIS_TLS_BROKEN || tls_pair.last == REDIS_TLS_WAIT);
        tls_pair_end(&tls_pair);
    }
}

static void damaged_data_ends_the_session(void **state) {
    (void)state;
    char bytes[256];
    for (size_t i = 0; i < 2; i++) {
        tls_test_open(versions[i]);
        tls_pair_serve(&tls_pair, "+OK\r\n", 5);
        int size = BIO_read(tls_pair.server_out, bytes, sizeof bytes);
        bytes[size - 1] = (char)(bytes[size - 1] ^ 1);
        tls_pair_feed(&tls_pair, bytes, (size_t)size);
        assert_int_equal(tls_pair.got_size, 0);
        tls_test_broken("TLS broke");
        tls_pair_end(&tls_pair);
    }
}

static void old_versions_are_refused(void **state) {
    (void)state;
    tls_test_begin(&tls_ids.server, TLS1_1_VERSION, NULL, NULL);
    SSL_CTX_set_cipher_list(tls_pair.server_context, "ALL:@SECLEVEL=0");
    SSL_set_cipher_list(tls_pair.server, "ALL:@SECLEVEL=0");
    tls_pair_run(&tls_pair);
    assert_false(tls_pair.opened);
    tls_test_broken("1.2 or later");
    tls_pair_end(&tls_pair);
}

static void renegotiation_is_refused(void **state) {
    (void)state;
    tls_test_open(TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(tls_pair.server), 1);
    (void)SSL_do_handshake(tls_pair.server);
    ERR_clear_error();
    char alert[256];
    int size = BIO_read(tls_pair.server_out, alert, sizeof alert);
    tls_pair_feed(&tls_pair, alert, (size_t)size);
    assert_int_equal(tls_pair.last, REDIS_TLS_WAIT); /* it goes on, and has said no */
    size_t answer = redis_tls_pending(tls_pair.session);
    assert_true(answer > 0 && answer < 64);
    tls_pair_end(&tls_pair);
}

static void keys_may_change(void **state) {
    (void)state;
    tls_test_open(TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(tls_pair.server, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_pair_serve(&tls_pair, "+OK\r\n", 5);
        tls_pair_run(&tls_pair);
        assert_got("+OK\r\n");
        assert_true(redis_tls_write(tls_pair.session, "PING\r\n", 6));
        tls_pair_run(&tls_pair);
        char echo[16];
        assert_int_equal(SSL_read(tls_pair.server, echo, sizeof echo), 6);
    }
    tls_pair_end(&tls_pair);
}

static void talk_without_data_is_bounded(void **state) {
    (void)state;
    tls_test_open(TLS1_3_VERSION);
    for (int i = 0; i < 3000 && tls_pair.last == REDIS_TLS_WAIT; i++) {
        assert_int_equal(SSL_new_session_ticket(tls_pair.server), 1);
        (void)SSL_do_handshake(tls_pair.server);
        tls_pair_run(&tls_pair);
    }
    tls_test_broken("without end");
    tls_pair_end(&tls_pair);
}

static void ends_are_told_to_both(void **state) {
    (void)state;
    char byte;
    for (size_t i = 0; i < 2; i++) {
        tls_test_open(versions[i]);
        redis_tls_close(tls_pair.session);
        tls_pair_run(&tls_pair);
        assert_int_equal(SSL_get_shutdown(tls_pair.server), SSL_RECEIVED_SHUTDOWN);
        assert_int_equal(SSL_read(tls_pair.server, &byte, 1), 0);
        assert_int_equal(SSL_get_error(tls_pair.server, 0), SSL_ERROR_ZERO_RETURN);
        tls_pair_end(&tls_pair);

        tls_test_open(versions[i]);
        tls_pair_serve(&tls_pair, "+OK\r\n", 5);
        (void)SSL_shutdown(tls_pair.server);
        tls_pair_run(&tls_pair);
        assert_got("+OK\r\n");
        assert_int_equal(tls_pair.last, REDIS_TLS_CLOSED);
        tls_pair_end(&tls_pair);
    }
    tls_test_begin(&tls_ids.server, 0, NULL, NULL);
    size_t hello = redis_tls_pending(tls_pair.session);
    redis_tls_close(tls_pair.session); /* nothing to say goodbye to yet */
    assert_int_equal(redis_tls_pending(tls_pair.session), hello);
    tls_pair_end(&tls_pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_may_come_in_any_pieces),
        cmocka_unit_test(what_is_sent_is_encrypted),
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
    return cmocka_run_group_tests(tests, tls_test_make, tls_test_free);
}
