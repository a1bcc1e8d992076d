#ifndef GAVEL_STORE_POSTGRES_KEY_H
#define GAVEL_STORE_POSTGRES_KEY_H

#include "store/store.h"

/*
 * An advisory lock's key, as pg_locks shows it and as the lock functions take it. Re-entrant.
 *
 * From a name it is the first 8 bytes, big-endian, of SHA-256 over "NAMESPACE/NAME", taken as a
 * signed 64-bit integer. pg_locks shows the upper half as classid, the lower as objid, and 1 as
 * objsubid; a key of two integers has them as they are, and 2 as objsubid.
 */
#define PG_KEY_TEXT 32 /* "-9223372036854775808" or "-2147483648, -2147483648", and its end */

struct pg_key {
    uint32_t classid;
    uint32_t objid;
    unsigned objsubid;      /* 1: one bigint, 2: two ints */
    char text[PG_KEY_TEXT]; /* the arguments of the lock functions */
};

/* `form` as given by --pg-key; NULL or its hash form: from the name. */
struct pg_key pg_key_make(const struct store_pg_key *form, const char *namespace_,
                          const char *name);

#endif
