#ifndef GAVEL_STORE_LOCAL_RECORD_H
#define GAVEL_STORE_LOCAL_RECORD_H

#include "election/reply.h"
#include "store/local/place.h"

#include <stddef.h>

/*
 * What the store remembers of the last grant of one election. On disk, one a line, in this order,
 * nothing else:
 *
 *     gavel-record 1
 *     token 1796157414879
 *     clean 0
 *     longest_ttl_ns 10000000000
 *     nonce 000102030405060708090a0b0c0d0e0f
 *     written_ms 1796157414879
 *     holder pod-a
 *     end
 *
 * Numbers are decimal without leading zeros. Whatever is not exactly this proves nothing.
 */
#define RECORD_TEXT_MAX 512
#define RECORD_LONGEST_TTL_NS (3600 * NS_PER_S)

struct record {
    uint64_t token;         /* 1 to TOKEN_MAX */
    bool clean;             /* the grant's holder said that it had stopped */
    int64_t longest_ttl_ns; /* the longest ttl that may still be in use; up to an hour */
    unsigned char nonce[NONCE_BYTES];
    int64_t written_ms;            /* CLOCK_REALTIME of the grant, for people */
    char holder[IDENTITY_MAX + 1]; /* "?" when it cannot be shown */
};

/* The length of the text, which is not ended by NUL. */
size_t record_format(const struct record *record, char text[RECORD_TEXT_MAX]);
/* False: `why` is a static string, the record is not set. */
bool record_parse(const char *text, size_t length, struct record *record, const char **why);

enum record_found {
    RECORD_READ,
    RECORD_MISSING,
    RECORD_SPOILED, /* cannot be understood: proves nothing; trouble says why */
    RECORD_FAILED,  /* could not be read now; trouble is set */
};

/* Both block. Thread-safe. */
enum record_found record_read(const struct place_files *files, struct record *record,
                              struct trouble *trouble);
/* Writes a new file, syncs it, renames it over the old one, syncs the folder. When it returns true
 * the record lasts. False: the old or the new one stands, whole; trouble is set. */
bool record_write(const struct place_files *files, const struct record *record,
                  struct trouble *trouble);

#endif
