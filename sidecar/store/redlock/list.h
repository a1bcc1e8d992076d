#ifndef GAVEL_STORE_REDLOCK_LIST_H
#define GAVEL_STORE_REDLOCK_LIST_H

#include "base/error.h"
#include "election/quorum.h"

#include <stdbool.h>
#include <stddef.h>

/*
 *     redlock:URL,URL,URL
 *
 * each the whole URL of one Redis server (redis://, rediss://, redis+unix:). A node's name is what
 * tells it from the others, without user and password: HOST:PORT/DATABASE. Commas part the nodes,
 * so one in a password is written %2C.
 */
#define REDLOCK_NODES_LEAST 3
#define REDLOCK_LIST_MAX 2000 /* bytes of all names; the scripts take a little more */

struct redlock_list {
    size_t count;
    char *urls[QUORUM_NODES_MAX]; /* hold secrets */
    char *names[QUORUM_NODES_MAX];
    char *all; /* the names, sorted, with commas: what goes into the records */
    bool tls;  /* of any */
};

/* True for redlock: URLs, right or wrong. */
bool redlock_list_claims(const char *url);

/* False: error names the node by its number and says what would be right, never a part of the URL.
 * Finish it in either case. */
bool redlock_list_parse(const char *url, struct redlock_list *list, struct error *error);
void redlock_list_finish(struct redlock_list *list);

#endif
