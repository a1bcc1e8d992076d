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

struct page_clocks {
    int64_t boot_ns;
    int64_t real_ns;
};

/* Whether a page of GAVEL_PAGE_BYTES can be read here at all. */
enum gavel_page_problem page_validate(page_word *words, const struct page_place *place);

/* One check. `read_clocks` is called after the contents were found whole. *doubted_ns belongs to
 * the reader of this page, 0 at first. `holder` may be NULL, else has GAVEL_PAGE_HOLDER_BYTES + 1.
 */
void page_read(page_word *words, struct page_clocks (*read_clocks)(void), int64_t *doubted_ns,
               struct gavel_page_answer *answer, char *holder);

#endif
