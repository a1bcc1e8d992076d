#ifndef GAVEL_PUBLISH_PAGE_PLACE_H
#define GAVEL_PUBLISH_PAGE_PLACE_H

#include "base/error.h"
#include "publish/page_words.h"

#include <stdbool.h>

/*
 * The folder of the pages: NAME.lease for each election, and a lock file that keeps a second
 * sidecar from putting its own pages in place of ours: their readers would follow it. Loop thread
 * only.
 */
struct page_place {
    const char *directory; /* the caller's */
    int directory_fd;
    int lock_fd;
};

/* False: error is set, nothing is left open. */
bool page_place_open(struct page_place *place, const char *directory, struct error *error);
void page_place_close(struct page_place *place);

/* The folder is not in memory: writing a page may have to wait for a disk. */
bool page_place_is_slow(const struct page_place *place);

/*
 * Makes the page of one election, claims it, lets `fill` write to it while nobody can see it, and
 * puts it into place in one step: a new file of mode 0644, all of it allocated, never through a
 * symbolic link. NULL: error is set. To be given back to page_place_remove().
 */
_Atomic uint64_t *page_place_make(struct page_place *place, const char *election,
                                  void (*fill)(void *context, _Atomic uint64_t *words),
                                  void *context, struct error *error);
/* Removes the file and unmaps it. */
void page_place_remove(struct page_place *place, const char *election, _Atomic uint64_t *words);

/* What this process writes into its pages. */
bool page_origin_read(struct page_origin *origin, struct error *error);

#endif
