#ifndef GAVEL_STORE_POSTGRES_TARGET_H
#define GAVEL_STORE_POSTGRES_TARGET_H

#include "base/error.h"
#include "store/postgres/failure.h"

#include <stdint.h>

/*
 * What a libpq URL points to. The URL itself goes to libpq untouched; here is only read what is
 * needed to look names up before, since libpq would do that on the loop. Re-entrant.
 */
#define PG_HOSTS_MAX 16

struct pg_target {
    size_t count;
    struct {
        char host[256];   /* a name, an address, or the folder of a socket */
        char address[64]; /* hostaddr; empty: to be looked up, unless it is a folder */
        char port[8];
    } hosts[PG_HOSTS_MAX];
    int64_t connect_timeout_ns; /* 0: not given */
};

bool pg_target_claims(const char *url);
/* No file and no name is looked at. */
bool pg_target_check(const char *url, struct error *error);
/* Reads the URL with what libpq adds to it (service file, environment), anew at each connect;
 * small local files only. False: `text` says what is wrong. */
bool pg_target_read(const char *url, struct pg_target *target, char text[PG_TEXT]);

/* Names of libpq's variables that the environment sets, for the log; empty: none. */
void pg_target_environment(char *names, size_t size);

#endif
