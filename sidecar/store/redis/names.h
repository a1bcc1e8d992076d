#ifndef GAVEL_STORE_REDIS_NAMES_H
#define GAVEL_STORE_REDIS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define REDIS_NAME_SIZE 256

/* The keys and the channel of one election; "{...}" makes them share one hash slot. Made when they
 * are needed: a thousand elections would have to keep four thousand names. */
struct redis_names {
    char space[REDIS_NAME_SIZE];   /* "gavel:{NS/NAME}" */
    char lease[REDIS_NAME_SIZE];   /* a string with an expiry */
    char record[REDIS_NAME_SIZE];  /* a hash without */
    char channel[REDIS_NAME_SIZE]; /* told of releases */
};

/* False: the names do not fit. */
bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election);

/* The first of them alone, cut when it does not fit. */
void redis_names_space(char *text, size_t size, const char *namespace_, const char *election);

/* The election's name within a channel of this namespace, its length in *length; NULL: it is none.
 * `size` bytes of `channel` count. */
const char *redis_names_election(const char *channel, size_t size, const char *namespace_,
                                 size_t *length);

#endif
