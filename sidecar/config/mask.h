#ifndef GAVEL_CONFIG_MASK_H
#define GAVEL_CONFIG_MASK_H

#include <stdbool.h>

/*
 * What may be a secret in a store's URL: passwords between "://" and "@", also where they contain
 * characters that should have been escaped, and what follows "password=" and the like, also where
 * that is percent-encoded; in PostgreSQL's URLs each parameter but those known to be none. Works
 * on wrong URLs too, and rather hides too much. Re-entrant.
 */

/* A copy with "***" in place of secrets. Heap, to be freed with free(). */
char *mask_url(const char *url);

/* What credentials a store's URL carries, any of its parts. */
struct url_credentials {
    bool user, password;
};
struct url_credentials url_credentials(const char *url);

#endif
