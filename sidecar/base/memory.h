#ifndef GAVEL_BASE_MEMORY_H
#define GAVEL_BASE_MEMORY_H

#include <stddef.h>

/* Heap memory for free(). Running out of memory aborts: the lease lapses, which is safe. */
void *memory_zeroed(size_t count, size_t size);
/* `block` may be NULL; new bytes are not set. */
void *memory_grow(void *block, size_t count, size_t size);
char *memory_text(const char *text);
char *memory_text_part(const char *text, size_t length);

/* Overwrites a secret, then frees it; NULL is allowed. */
void memory_free_secret(char *text);

#endif
