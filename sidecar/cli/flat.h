#ifndef GAVEL_CLI_FLAT_H
#define GAVEL_CLI_FLAT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Just enough JSON to show the one line that `status` answers: an object with members of simple
 * values; other values are checked and stepped over. Robust against junk, libc only, re-entrant.
 */

/* True when the text is one JSON object and nothing else. */
bool flat_is_object(const char *json);

/*
 * The member's value as text for a terminal: of a string its characters, control characters as
 * "?"; of an array of strings all of them, separated by ", "; else as written ("true", "null").
 * Cut to `size`. False: no such member. The object must be flat_is_object().
 */
bool flat_find(const char *json, const char *name, char *text, size_t size);

#endif
