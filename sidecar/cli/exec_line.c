#include "cli/exec_line.h"

#include "cli/reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NUMBERS_MOST 4

/* "VERB N N": exactly so many numbers, each up to its bound. */
static bool take(const char *line, const char *verb, size_t count, const uint64_t *most,
                 uint64_t *numbers) {
    size_t length = strlen(verb);
    if (strncmp(line, verb, length) != 0 || line[length] != ' ') {
        return false;
    }
    line += length + 1;
    for (size_t i = 0; i < count; i++) {
        if (!reply_number(&line, most[i], i + 1 < count ? ' ' : '\0', &numbers[i])) {
            return false;
        }
    }
    return true;
}

struct exec_line exec_line_parse(const char *line) {
    static const uint64_t with_token[] = {REPLY_TOKEN_MOST, EXEC_LINE_MS_MOST, INT64_MAX,
                                          EXEC_LINE_MS_MOST};
    static const uint64_t alone[] = {EXEC_LINE_MS_MOST};
    uint64_t numbers[NUMBERS_MOST] = {0};
    struct exec_line parsed = {.kind = EXEC_LINE_OTHER};
    if (take(line, "lease", 4, with_token, numbers) && numbers[0] > 0) {
        parsed.kind = EXEC_LINE_LEASE;
        parsed.deadline_ns = (int64_t)numbers[2];
        parsed.ttl_ms = (int64_t)numbers[3];
    } else if (take(line, "revoke", 2, with_token, numbers) && numbers[0] > 0) {
        parsed.kind = EXEC_LINE_REVOKE;
    } else if (take(line, "beat", 1, alone, numbers) && numbers[0] > 0) {
        return (struct exec_line){.kind = EXEC_LINE_BEAT, .ms = (int64_t)numbers[0]};
    } else {
        return parsed;
    }
    parsed.token = numbers[0];
    parsed.ms = (int64_t)numbers[1];
    return parsed;
}
