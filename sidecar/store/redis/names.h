#ifndef GAVEL_STORE_REDIS_NAMES_H
#define GAVEL_STORE_REDIS_NAMES_H

#include <stdbool.h>

#define REDIS_NAME_SIZE 256

/* The keys and the channel of one election; "{...}" makes them share one hash slot. */
struct redis_names {
    char space[REDIS_NAME_SIZE];   /* "gavel:{NS/NAME}" */
    char lease[REDIS_NAME_SIZE];   /* a string with an expiry */
    char record[REDIS_NAME_SIZE];  /* a hash without */
    char channel[REDIS_NAME_SIZE]; /* told of releases */
};

/* False: the names do not fit. */
bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election);

#endif
