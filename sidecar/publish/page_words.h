#ifndef GAVEL_PUBLISH_PAGE_WORDS_H
#define GAVEL_PUBLISH_PAGE_WORDS_H

#include "clients/c/gavel_page.h"

#include <stdatomic.h>

/*
 * Writing a page that is in memory: one writer, any number of readers in other processes. No I/O,
 * no allocation. The sequence lock is the one of H.-J. Boehm, "Can seqlocks get along with
 * programming language memory models?" (2012), with ordered loads and stores in place of fences.
 */
struct page_origin {
    uint64_t boot_id[2];
    uint64_t time_namespace;
    uint64_t writer;
    uint64_t writer_start;
};

struct page_content {
    uint64_t state; /* enum gavel_page_state */
    uint64_t token;
    int64_t boot_deadline_ns;
    int64_t real_deadline_ns;
    int64_t renewed_ns;
    int64_t valid_for_ns;
    uint64_t holder_length;
    char holder[GAVEL_PAGE_HOLDER_BYTES]; /* zeroes behind it */
};

/* The part that never changes; before anybody else can see the page. */
void page_words_begin(_Atomic uint64_t *words, const struct page_origin *origin);

/* Replaces the contents. When it returns, no reader whose clocks are read later goes by what was
 * there before. */
void page_words_write(_Atomic uint64_t *words, const struct page_content *content);

#endif
