#ifndef GAVEL_CONFIG_SECRETS_H
#define GAVEL_CONFIG_SECRETS_H

#include "base/error.h"

#define SECRET_MOST 4096 /* bytes */

/* The content of a secret's file, without the one line end that editors leave. NULL: `error` says
 * why, in words that go on after the path, and never shows the content. Heap, for
 * memory_free_secret(). */
char *secret_read(const char *path, struct error *error);

#endif
