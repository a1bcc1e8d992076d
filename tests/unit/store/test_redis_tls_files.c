/* The files of TLS: what is wrong with them is told, and what is new in them is used. */
#include "tls_kit.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tls_identity ca, other_ca, server, client;

static int make_identities(void **state) {
    (void)state;
    struct tls_plan plans[] = {{.file = "ca"},
                               {.file = "other-ca"},
                               {.file = "server", .names = "DNS:redis.example"},
                               {.file = "client"}};
    ca = tls_kit_issue(NULL, &plans[0]);
    other_ca = tls_kit_issue(NULL, &plans[1]);
    server = tls_kit_issue(&ca, &plans[2]);
    client = tls_kit_issue(&ca, &plans[3]);
    return 0;
}

static int free_identities(void **state) {
    (void)state;
    tls_kit_free(&ca);
    tls_kit_free(&other_ca);
    tls_kit_free(&server);
    tls_kit_free(&client);
    tls_kit_finish();
    return 0;
}

static struct store_tls files_of(const char *ca_path, const char *certificate, const char *key) {
    struct store_tls files = {.paths = {[STORE_TLS_CA] = ca_path,
                                        [STORE_TLS_CERTIFICATE] = certificate,
                                        [STORE_TLS_KEY] = key}};
    return files;
}

static void assert_refused(const struct store_tls *files, enum store_tls_file file,
                           const char *word) {
    struct store_tls_finding finding;
    assert_null(redis_tls_create(files, &finding));
    assert_int_equal(finding.file, file);
    if (strstr(finding.error.text, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, finding.error.text);
    }
    assert_false(redis_tls_check(files, &finding));
    assert_int_equal(ERR_peek_error(), 0);
}

/* One file of each kind, with that content. */
static void assert_content_refused(const char *bytes, size_t size, const char *ca_word,
                                   const char *certificate_word, const char *key_word) {
    const char *path = tls_kit_write("wrong", bytes, size);
    struct store_tls files = files_of(path, NULL, NULL);
    assert_refused(&files, STORE_TLS_CA, ca_word);
    files = files_of(ca.certificate_path, path, client.key_path);
    assert_refused(&files, STORE_TLS_CERTIFICATE, certificate_word);
    files = files_of(ca.certificate_path, client.certificate_path, path);
    assert_refused(&files, STORE_TLS_KEY, key_word);
}

static void content_that_is_none_is_refused(void **state) {
    (void)state;
    static const char none[] = "holds no certificate";
    static const char no_key[] = "holds no private key";
    static const char broken[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    static const char cut[] = "-----BEGIN CERTIFICATE-----\nMIIB";
    static const char broken_key[] =
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    unsigned char *der = NULL;
    int size = i2d_X509(client.certificate, &der);
    assert_true(size > 0);
    assert_content_refused("", 0, none, none, no_key);
    assert_content_refused("hello\n", 6, none, none, no_key);
    assert_content_refused("\0\0\0\0", 4, none, none, no_key);
    assert_content_refused((const char *)der, (size_t)size, none, none, no_key);
    assert_content_refused(broken, strlen(broken), "broken certificate, number 1",
                           "broken certificate, number 1", no_key);
    assert_content_refused(cut, strlen(cut), "broken certificate", "broken certificate", no_key);
    assert_content_refused(broken_key, strlen(broken_key), none, none, no_key);
    OPENSSL_free(der);
}

static void places_that_are_no_files_are_refused(void **state) {
    (void)state;
    char path[96];
    struct store_tls files = files_of("/nonexistent/ca.pem", NULL, NULL);
    assert_refused(&files, STORE_TLS_CA, "No such file");
    files = files_of("/tmp", NULL, NULL);
    assert_refused(&files, STORE_TLS_CA, "not a regular file");
    (void)snprintf(path, sizeof path, "%s/fifo", tls_kit_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    files = files_of(ca.certificate_path, client.certificate_path, path);
    assert_refused(&files, STORE_TLS_KEY, "not a regular file"); /* and does not hang */
    (void)snprintf(path, sizeof path, "%s/huge", tls_kit_folder());
    FILE *huge = fopen(path, "w");
    assert_non_null(huge);
    assert_int_equal(ftruncate(fileno(huge), 1 << 30), 0);
    assert_int_equal(fclose(huge), 0);
    files = files_of(path, NULL, NULL);
    assert_refused(&files, STORE_TLS_CA, "too long");
}

static void a_broken_certificate_behind_a_good_one_is_refused(void **state) {
    (void)state;
    static const char broken[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    char path[96];
    (void)snprintf(path, sizeof path, "%s/mixed", tls_kit_folder());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(PEM_write_X509(out, ca.certificate), 1);
    assert_true(fputs(broken, out) >= 0);
    assert_int_equal(fclose(out), 0);
    struct store_tls files = files_of(path, NULL, NULL);
    assert_refused(&files, STORE_TLS_CA, "number 2");
}

static void keys_must_fit(void **state) {
    (void)state;
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    char path[96];
    struct store_tls files = files_of(NULL, client.certificate_path, server.key_path);
    assert_refused(&files, STORE_TLS_KEY, "does not belong to the certificate");
    (void)snprintf(path, sizeof path, "%s/rsa", tls_kit_folder());
    FILE *out = fopen(path, "w");
    assert_true(rsa != NULL && out != NULL);
    assert_int_equal(PEM_write_PrivateKey(out, rsa, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(out), 0);
    EVP_PKEY_free(rsa);
    files = files_of(NULL, client.certificate_path, path); /* of another kind */
    assert_refused(&files, STORE_TLS_KEY, "does not belong to the certificate");
    files = files_of(NULL, client.key_path, client.certificate_path); /* swapped */
    assert_refused(&files, STORE_TLS_CERTIFICATE, "holds no certificate");
}

/* Where a passphrase would be asked for, the terminal is left alone. An empty one is one too. */
static void encrypted_keys_are_refused(void **state) {
    (void)state;
    static const int sizes[] = {6, 0, 6};
    char path[96];
    (void)snprintf(path, sizeof path, "%s/encrypted", tls_kit_folder());
    for (size_t i = 0; i < 3; i++) {
        char phrase[] = "sEcReT";
        BIO *out = BIO_new_file(path, "w");
        assert_non_null(out);
        int written = i < 2
                          ? PEM_write_bio_PKCS8PrivateKey(out, client.key, EVP_aes_256_cbc(),
                                                          phrase, sizes[i], NULL, NULL)
                          : PEM_write_bio_PrivateKey_traditional(out, client.key, EVP_aes_256_cbc(),
                                                                 (unsigned char *)phrase, sizes[i],
                                                                 NULL, NULL);
        assert_int_equal(written, 1);
        BIO_free(out);
        struct store_tls files = files_of(NULL, client.certificate_path, path);
        assert_refused(&files, STORE_TLS_KEY, "is encrypted");
    }
}

static void keys_that_others_can_read_are_told(void **state) {
    (void)state;
    static const struct {
        mode_t mode;
        bool exposed;
    } cases[] = {{0600, false}, {0400, false}, {0640, true}, {0604, true}, {0444, true}};
    struct store_tls files = files_of(NULL, client.certificate_path, client.key_path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store_tls_finding finding;
        assert_int_equal(chmod(client.key_path, cases[i].mode), 0);
        assert_true(redis_tls_check(&files, &finding));
        assert_int_equal(finding.key_exposed, cases[i].exposed);
    }
    assert_int_equal(chmod(client.key_path, 0600), 0);
}

/* Whether a session of that context gets through to the server. */
static bool connects(struct redis_tls *tls) {
    struct tls_pair pair;
    tls_pair_begin(&pair, &server, 0, NULL);
    pair.session = redis_tls_begin(tls, "redis.example");
    tls_pair_run(&pair); /* nothing has come yet */
    size_t size;
    (void)redis_tls_next(pair.session, pair.got, sizeof pair.got, &size);
    tls_pair_run(&pair);
    bool opened = pair.opened;
    tls_pair_end(&pair);
    return opened;
}

static void copy(const char *from, const char *to) {
    static char bytes[1 << 16];
    FILE *in = fopen(from, "r");
    assert_non_null(in);
    size_t size = fread(bytes, 1, sizeof bytes, in);
    assert_int_equal(fclose(in), 0);
    (void)tls_kit_write(to, bytes, size);
}

static void files_are_read_again(void **state) {
    (void)state;
    struct store_tls_finding finding;
    char path[96];
    copy(other_ca.certificate_path, "changing");
    (void)snprintf(path, sizeof path, "%s/changing", tls_kit_folder());
    struct store_tls files = files_of(path, NULL, NULL);
    struct redis_tls *tls = redis_tls_create(&files, &finding);
    assert_non_null(tls);
    assert_false(connects(tls));
    copy(ca.certificate_path, "changing");
    assert_false(connects(tls)); /* not by itself */
    assert_true(redis_tls_reload(tls, &finding));
    assert_true(connects(tls));
    (void)tls_kit_write("changing", "nonsense", 8);
    assert_false(redis_tls_reload(tls, &finding));
    assert_int_equal(finding.file, STORE_TLS_CA);
    assert_true(connects(tls)); /* with the old one */
    redis_tls_destroy(tls);
}

static void sessions_outlive_what_they_were_made_of(void **state) {
    (void)state;
    struct tls_pair pair;
    struct store_tls_finding finding;
    struct store_tls files = files_of(ca.certificate_path, NULL, NULL);
    tls_pair_begin(&pair, &server, 0, NULL);
    tls_pair_connect(&pair, &files, "redis.example");
    assert_true(redis_tls_reload(pair.tls, &finding));
    redis_tls_destroy(pair.tls);
    pair.tls = NULL;
    tls_pair_run(&pair);
    assert_true(pair.opened);
    tls_pair_end(&pair);
}

/* Several CAs in one file, and a client certificate with the one between it and its CA. */
static void whole_chains_are_taken(void **state) {
    (void)state;
    char path[96];
    struct tls_pair pair;
    (void)snprintf(path, sizeof path, "%s/bundle", tls_kit_folder());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs("# comments may stand between them\n", out) >= 0);
    assert_int_equal(PEM_write_X509(out, other_ca.certificate), 1);
    assert_int_equal(PEM_write_X509(out, ca.certificate), 1);
    assert_true(fputs("\n\n", out) >= 0);
    assert_int_equal(fclose(out), 0);
    copy(client.certificate_path, "chain");
    char chain[96];
    (void)snprintf(chain, sizeof chain, "%s/chain", tls_kit_folder());
    out = fopen(chain, "a");
    assert_non_null(out);
    assert_int_equal(PEM_write_X509(out, other_ca.certificate), 1);
    assert_int_equal(fclose(out), 0);
    struct store_tls files = files_of(path, chain, client.key_path);
    tls_pair_begin(&pair, &server, 0, &ca);
    tls_pair_connect(&pair, &files, "redis.example");
    tls_pair_run(&pair);
    assert_true(pair.opened && pair.last == REDIS_TLS_WAIT);
    STACK_OF(X509) *behind = SSL_get_peer_cert_chain(pair.server); /* the first certificate */
    assert_int_equal(sk_X509_num(behind), 1);
    assert_int_equal(X509_cmp(sk_X509_value(behind, 0), other_ca.certificate), 0);
    tls_pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_that_is_none_is_refused),
        cmocka_unit_test(places_that_are_no_files_are_refused),
        cmocka_unit_test(a_broken_certificate_behind_a_good_one_is_refused),
        cmocka_unit_test(keys_must_fit),
        cmocka_unit_test(encrypted_keys_are_refused),
        cmocka_unit_test(keys_that_others_can_read_are_told),
        cmocka_unit_test(files_are_read_again),
        cmocka_unit_test(sessions_outlive_what_they_were_made_of),
        cmocka_unit_test(whole_chains_are_taken),
    };
    return cmocka_run_group_tests(tests, make_identities, free_identities);
}
