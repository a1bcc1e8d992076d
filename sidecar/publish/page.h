#ifndef GAVEL_PUBLISH_PAGE_H
#define GAVEL_PUBLISH_PAGE_H

#include "base/error.h"
#include "publish/board.h"

/*
 * The shared pages of all elections, NAME.lease in one folder: readers map them and ask without us
 * (clients/c/gavel_page.h has the layout). Nobody tells us who has read a page: each is taken for
 * read at the last moment at which it could have been. Loop thread only.
 */
struct pages;

struct pages_setup {
    const char *directory;     /* must stay */
    const struct board *board; /* names, identity; must stay */
    int64_t good_for_ns;       /* of a lease from the request on: ttl - margin */
};

/* Makes the files at once; they say "unknown". Logs a warning where the folder is on a disk. NULL:
 * error is set. */
struct pages *pages_create(const struct pages_setup *setup, struct error *error);

/* Says "not leader" and removes the files. */
void pages_destroy(struct pages *pages);

/* Shows a view, before the board takes it over. While an application is attached a reading is good
 * for PAGE_ATTACHED_NS at most: when it ends the lock is given away at once, and who else has read
 * the page is not known. Where the page promises less from now on, `handouts` gets the end of what
 * was read until now. */
#define PAGE_ATTACHED_NS (5 * NS_PER_MS)
void pages_show(struct pages *pages, size_t election, const struct view *view, bool attached,
                struct handouts *handouts);

/* The end, on BOOTTIME, of what one who reads at `now` may rely on; 0: the page does not say
 * "leader". */
int64_t pages_readable_until_ns(const struct pages *pages, size_t election, struct instant now);

#endif
