#include "publish/page_words.h"

#include <string.h>

static void store(_Atomic uint64_t *words, unsigned word, uint64_t value) {
    /* Release: who sees this also sees that the sequence is odd. */
    atomic_store_explicit(&words[word], value, memory_order_release);
}

void page_words_begin(_Atomic uint64_t *words, const struct page_origin *origin) {
    store(words, GAVEL_PAGE_WORD_MAGIC, GAVEL_PAGE_MAGIC);
    store(words, GAVEL_PAGE_WORD_VERSION, GAVEL_PAGE_VERSION);
    store(words, GAVEL_PAGE_WORD_BYTES, GAVEL_PAGE_BYTES);
    store(words, GAVEL_PAGE_WORD_BOOT_ID, origin->boot_id[0]);
    store(words, GAVEL_PAGE_WORD_BOOT_ID + 1, origin->boot_id[1]);
    store(words, GAVEL_PAGE_WORD_TIME_NAMESPACE, origin->time_namespace);
    store(words, GAVEL_PAGE_WORD_WRITER, origin->writer);
    store(words, GAVEL_PAGE_WORD_WRITER_START, origin->writer_start);
}

void page_words_write(_Atomic uint64_t *words, const struct page_content *content) {
    uint64_t holder[GAVEL_PAGE_HOLDER_BYTES / 8];
    memcpy(holder, content->holder, sizeof holder);
    /* An exchange, not a store: it is out of this processor's buffers before anything that comes
     * after it, such as a look at the clock. */
    uint64_t sequence =
        atomic_load_explicit(&words[GAVEL_PAGE_WORD_SEQUENCE], memory_order_relaxed);
    (void)atomic_exchange(&words[GAVEL_PAGE_WORD_SEQUENCE], sequence + 1);
    store(words, GAVEL_PAGE_WORD_STATE, content->state);
    store(words, GAVEL_PAGE_WORD_TOKEN, content->token);
    store(words, GAVEL_PAGE_WORD_BOOT_DEADLINE, (uint64_t)content->boot_deadline_ns);
    store(words, GAVEL_PAGE_WORD_REAL_DEADLINE, (uint64_t)content->real_deadline_ns);
    store(words, GAVEL_PAGE_WORD_RENEWED, (uint64_t)content->renewed_ns);
    store(words, GAVEL_PAGE_WORD_VALID_FOR, (uint64_t)content->valid_for_ns);
    store(words, GAVEL_PAGE_WORD_HOLDER_BYTES, content->holder_length);
    for (unsigned i = 0; i < sizeof holder / sizeof holder[0]; i++) {
        store(words, GAVEL_PAGE_WORD_HOLDER + i, holder[i]);
    }
    (void)atomic_exchange(&words[GAVEL_PAGE_WORD_SEQUENCE], sequence + 2);
}
