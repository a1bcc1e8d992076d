#ifndef GAVEL_TESTS_TLS_TEST_H
#define GAVEL_TESTS_TLS_TEST_H

/* One pair and a handful of identities, for the tests of sessions. */

#include "tls_kit.h"

#define TLS_TEST_HOST "redis.example"

struct tls_test_identities {
    struct tls_identity ca, other_ca;
    struct tls_identity server, client; /* of ca; the server is TLS_TEST_HOST and 127.0.0.1 */
    struct tls_identity stranger;       /* of other_ca */
};

extern struct tls_test_identities tls_ids;
extern struct tls_pair tls_pair;

/* A group's setup and teardown. */
int tls_test_make(void **state);
int tls_test_free(void **state);

struct store_tls tls_test_trust(const struct tls_identity *ca, const struct tls_identity *client);
/* Trusts `ca`. See tls_pair_begin(). */
void tls_test_begin(const struct tls_identity *server, int version,
                    const struct tls_identity *client_ca, const struct tls_identity *client);
/* A session that is open. */
void tls_test_open(int version);
/* It is broken, in all respects, and says that word. */
void tls_test_broken(const char *word);

#endif
