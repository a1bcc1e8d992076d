#include "store/postgres/key.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASHED_MAX 512 /* two names of 100 characters are far below it */

static uint64_t hash(const char *namespace_, const char *name) {
    char text[HASHED_MAX];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    uint64_t number = 0;
    int length = snprintf(text, sizeof text, "%s/%s", namespace_, name);
    if (length < 0 || (size_t)length >= sizeof text ||
        EVP_Digest(text, (size_t)length, digest, &size, EVP_sha256(), NULL) != 1) {
        abort(); /* names are checked; without SHA-256 there is no key that others share */
    }
    for (unsigned i = 0; i < 8; i++) {
        number = number << 8 | digest[i];
    }
    return number;
}

static uint64_t bits_of(int64_t number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static int64_t signed_of(uint64_t bits) {
    int64_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

struct pg_key pg_key_make(const struct store_pg_key *form, const char *namespace_,
                          const char *name) {
    struct pg_key key = {.objsubid = 1};
    if (form != NULL && form->form == STORE_PG_KEY_INTS) {
        key.objsubid = 2;
        key.classid = (uint32_t)bits_of(form->first);
        key.objid = (uint32_t)bits_of(form->second);
        (void)snprintf(key.text, sizeof key.text, "%" PRId32 ", %" PRId32, form->first,
                       form->second);
        return key;
    }
    bool given = form != NULL && form->form == STORE_PG_KEY_BIGINT;
    uint64_t bits = given ? bits_of(form->whole) : hash(namespace_, name);
    key.classid = (uint32_t)(bits >> 32);
    key.objid = (uint32_t)bits;
    (void)snprintf(key.text, sizeof key.text, "%" PRId64, signed_of(bits));
    return key;
}
