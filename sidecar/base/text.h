#ifndef GAVEL_BASE_TEXT_H
#define GAVEL_BASE_TEXT_H

#include <stddef.h>

/*
 * Bytes from anywhere, made fit for a line of output: what is inside a JSON string, which is also
 * safe on a terminal. Control characters (C0, DEL, C1), quotes and backslashes are escaped, bytes
 * that are not UTF-8 become U+FFFD. Re-entrant; no allocation, no errors.
 */
#define TEXT_ESCAPED_MAX 6 /* the longest form of one character, "\u001b" */

/* Takes the first character of `text` (not empty), writes its escaped form to `out`, which is not
 * ended by NUL, and that form's length to `out_length`. Returns how many bytes were taken. */
size_t text_escape_one(const char *text, char out[TEXT_ESCAPED_MAX], size_t *out_length);

/* Writes `text` in double quotes for people: escaped, but for quotes and backslashes; what does not
 * fit is cut and ends in "...". At least 6 bytes; always ended by NUL. Returns `out`. */
const char *text_quote(const char *text, char *out, size_t size);

#endif
