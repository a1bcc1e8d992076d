#ifndef GAVEL_STORE_REDIS_FAILURE_H
#define GAVEL_STORE_REDIS_FAILURE_H

#include <stddef.h>

/* What kind of error reply a server gave, by its text; also where it is wrapped, as in
 * "ERR Error running script ... -READONLY ...". */
enum redis_failure {
    REDIS_FAILURE_OTHER,      /* LOADING, BUSY, MISCONF, OOM, ...: the connection is good */
    REDIS_FAILURE_NOSCRIPT,   /* it does not know the script by its hash */
    REDIS_FAILURE_DENIED,     /* the command does not exist there, or is not allowed */
    REDIS_FAILURE_NOT_MASTER, /* connect anew, elsewhere perhaps */
    REDIS_FAILURE_AUTH,       /* user or password are missing or wrong */
    REDIS_FAILURE_CLUSTER,    /* a node of a Redis Cluster */
};

enum redis_failure redis_failure_of(const char *text);

/* The same text for people, with what would be right in front of it where that is known. */
void redis_failure_explain(char *out, size_t size, const char *text);

/* Copies a server's text for people: one line, printable ASCII, cut to size. */
void redis_failure_text(char *out, size_t size, const char *text, size_t length);

#endif
