#ifndef GAVEL_STORE_REDIS_NAMES_H
#define GAVEL_STORE_REDIS_NAMES_H

#include <stdbool.h>

#define REDIS_NAME_SIZE 256

/* The keys and the channel of one election; "{...}" makes them share one hash slot. */
struct redis_names {
    const char *space;   /* "gavel:{NS/NAME}" */
    const char *lease;   /* a string with an expiry */
    const char *record;  /* a hash without */
    const char *channel; /* told of releases */
};

/* The caller's memory; the names are on the heap until they are finished. False: they do not fit,
 * and there is nothing to finish. */
bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election);
/* Zeroed memory is allowed. */
void redis_names_finish(struct redis_names *names);

#endif
