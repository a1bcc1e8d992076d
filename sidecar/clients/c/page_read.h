#ifndef GAVEL_CLIENTS_C_PAGE_READ_H
#define GAVEL_CLIENTS_C_PAGE_READ_H

/* The reading of a page that is in memory; gavel_page.h's own. No I/O, no allocation. */

#include "gavel_page.h"

#include <stdatomic.h>

typedef const _Atomic uint64_t page_word;

/* Where the reader is. */
struct page_place {
    uint64_t boot_id[2];
    uint64_t time_namespace;
};

/* What clock_gettime() knows; the last is read in a fraction of the time, and may be behind. */
enum page_clock { PAGE_CLOCK_BOOTTIME, PAGE_CLOCK_REALTIME, PAGE_CLOCK_REALTIME_COARSE };

/* Nanoseconds; INT64_MAX: there is no such clock. */
typedef int64_t page_clock_read(enum page_clock clock);

/* Whether a page of GAVEL_PAGE_BYTES can be read here at all. */
enum gavel_page_problem page_validate(page_word *words, const struct page_place *place);

/* One check. The clocks are read after the contents were found whole. *doubted_ns belongs to
 * the reader of this page, 0 at first. `holder` may be NULL, else has GAVEL_PAGE_HOLDER_BYTES + 1.
 */
void page_read(page_word *words, page_clock_read *read_clock, int64_t *doubted_ns,
               struct gavel_page_answer *answer, char *holder);

#endif
