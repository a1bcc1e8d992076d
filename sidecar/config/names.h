#ifndef GAVEL_CONFIG_NAMES_H
#define GAVEL_CONFIG_NAMES_H

#include <stdbool.h>

/* What names may look like. libc only, re-entrant. */

#define NAME_SHAPE "1 to 100 of A-Z a-z 0-9 . _ -, the first a letter or a digit"

/* An election or a namespace: NAME_SHAPE. */
bool name_is_valid(const char *text);

/* A holder that can be shown: 1 to 128 printable ASCII characters without space or quotes, and not
 * just "-" or "?", which mean something else in replies. */
bool name_is_identity(const char *text);

#endif
