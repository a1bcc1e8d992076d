#ifndef GAVEL_CLI_EXEC_LINE_H
#define GAVEL_CLI_EXEC_LINE_H

#include <stdint.h>

/* A line that an attached connection hears. libc only, re-entrant. */
#define EXEC_LINE_MS_MOST INT64_C(10000000000) /* no time that a sidecar names is longer */

enum exec_line_kind {
    EXEC_LINE_OTHER, /* not one of the lines that are known, which is no reason to end */
    EXEC_LINE_LEASE,
    EXEC_LINE_REVOKE,
    EXEC_LINE_BEAT,
};

struct exec_line {
    enum exec_line_kind kind;
    uint64_t token;      /* lease, revoke: not 0 */
    int64_t ms;          /* lease: valid when it was sent; revoke: left; beat: within, not 0 */
    int64_t deadline_ns; /* lease: CLOCK_BOOTTIME */
    int64_t ttl_ms;      /* lease */
};

/* "lease TOKEN VALID_MS DEADLINE_NS TTL_MS", "revoke TOKEN MS", "beat MS": exactly so. */
struct exec_line exec_line_parse(const char *line);

#endif
