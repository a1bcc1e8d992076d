#ifndef GAVEL_STORE_POSTGRES_ROUTE_H
#define GAVEL_STORE_POSTGRES_ROUTE_H

#include "store/postgres/link.h"
#include "store/postgres/target.h"

/*
 * The way to the server: goes through the hosts of the URL, and through the addresses of each,
 * looked up off the loop. The host that worked last goes first. The caller's memory.
 */
#define PG_ADDRESSES_MAX 8

struct pg_lookup;

struct pg_route {
    uv_loop_t *loop;
    struct store_lives *lives;
    const char *url;
    const char *identity;
    void (*found)(void *context); /* after pg_route_next() said PG_ROUTE_LATER */
    void *context;

    struct pg_target target;
    size_t tried;  /* hosts that this round is through with */
    size_t host;   /* of the address that is used */
    size_t worked; /* the host to begin with */
    size_t address_count, next_address;
    char addresses[PG_ADDRESSES_MAX][64];
    char address[64]; /* the one that is used; empty: a socket's folder */
    struct pg_lookup *lookup;
    char why[PG_TEXT]; /* of a look-up that failed */
};

enum pg_route_next { PG_ROUTE_READY, PG_ROUTE_LATER, PG_ROUTE_END };

void pg_route_init(struct pg_route *route, uv_loop_t *loop, struct store_lives *lives,
                   const char *url, const char *identity);
/* Begins a round. False: `text` says why. */
bool pg_route_begin(struct pg_route *route, char text[PG_TEXT]);
/* The next address; LATER: `found` will be called, then ask again. */
enum pg_route_next pg_route_next(struct pg_route *route);
/* Opens a connection to the address that is used. */
bool pg_route_open(const struct pg_route *route, struct pg_link *link, enum pg_failure *failure,
                   char text[PG_TEXT]);
/* "db.example:5432", for people. */
void pg_route_text(const struct pg_route *route, char *text, size_t size);
/* `found` is not called any more. */
void pg_route_forget(struct pg_route *route);

#endif
