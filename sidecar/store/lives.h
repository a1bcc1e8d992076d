#ifndef GAVEL_STORE_LIVES_H
#define GAVEL_STORE_LIVES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Counts the libuv handles and requests of one store that are not gone yet. Whoever starts one
 * counts it in; its last callback counts it out. Once `closing` is set, the last one calls
 * `empty`, which may free everything.
 */
struct store_lives {
    size_t count;
    bool closing;
    void (*empty)(void *context);
    void *context;
};

static inline void store_lives_begin(struct store_lives *lives) {
    lives->count++;
}

static inline void store_lives_end(struct store_lives *lives) {
    lives->count--;
    if (lives->count == 0 && lives->closing) {
        lives->empty(lives->context);
    }
}

#endif
