#ifndef GAVEL_BASE_FILE_H
#define GAVEL_BASE_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A small file as a whole. Heap; `bytes` ends in a NUL that `size` does not count. */
struct file_content {
    char *bytes;
    size_t size;
    mode_t mode;
};

/* Reads a regular file of at most `most` bytes; never waits for a writer. False: `error` says why,
 * in words that go on after the path; there is nothing to finish then. Blocks as reading a local
 * file does. Re-entrant. */
bool file_read(const char *path, size_t most, struct file_content *content, struct error *error);
/* Overwrites what was read, then frees it. */
void file_content_finish(struct file_content *content);

#endif
