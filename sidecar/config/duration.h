#ifndef GAVEL_CONFIG_DURATION_H
#define GAVEL_CONFIG_DURATION_H

#include <stddef.h>
#include <stdint.h>

/* Times with their unit: "300ms", "10s", "1.5s", "2m", "1h"; several from large to small: "1m30s".
 * libc only; re-entrant. */
#define DURATION_TEXT_MAX 32

/* Nanoseconds, 0 to 10000 hours. Returns NULL, or what is wrong, in words that go on after the
 * value (static text). */
const char *duration_parse(const char *text, int64_t *ns);

/* In the largest unit that gives a short number: "2s", "1.5s", "66.666666ms". */
const char *duration_format(int64_t ns, char *text, size_t size);

#endif
