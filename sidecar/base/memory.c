#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void *or_abort(void *block) {
    if (block == NULL) {
        abort();
    }
    return block;
}

void *memory_zeroed(size_t count, size_t size) {
    return or_abort(calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *memory_grow(void *block, size_t count, size_t size) {
    return or_abort(reallocarray(block, count > 0 ? count : 1, size > 0 ? size : 1));
}

char *memory_text(const char *text) {
    return or_abort(strdup(text));
}

char *memory_text_part(const char *text, size_t length) {
    return or_abort(strndup(text, length));
}

void memory_free_secret(char *text) {
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}
