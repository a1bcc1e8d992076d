/* What `gavelctl exec` hears on its attached connection, a line a line. Whatever it is, what is
 * taken is within bounds that can be calculated with, has one way to be written, and never makes a
 * lease longer than it was said to be. */
#include "cli/exec_line.h"
#include "cli/client.h"
#include "cli/exec_lease.h"
#include "cli/reply.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_lease(struct exec_lease *lease, const struct exec_line *heard) {
    struct exec_lease before = *lease;
    if (!exec_lease_hear(lease, heard->token, heard->ms, heard->deadline_ns, heard->ttl_ms)) {
        require(memcmp(&before, lease, sizeof before) == 0);
        return;
    }
    require(exec_lease_left_ns(lease) <= heard->ms * NS_PER_MS);
    require(lease->grace_ns >= 0 && lease->grace_ns <= heard->ttl_ms * NS_PER_MS);
}

static void check_line(struct exec_lease *lease, const char *line) {
    struct exec_line heard = exec_line_parse(line);
    if (heard.kind == EXEC_LINE_OTHER) {
        return;
    }
    bool beat = heard.kind == EXEC_LINE_BEAT;
    require(heard.ms >= 0 && heard.ms <= EXEC_LINE_MS_MOST && heard.deadline_ns >= 0);
    require(beat ? heard.ms > 0 : heard.token > 0 && heard.token <= REPLY_TOKEN_MOST);
    require(strspn(line, "abelrstvok 0123456789") == strlen(line));
    if (heard.kind == EXEC_LINE_LEASE) {
        check_lease(lease, &heard);
    } else if (heard.kind == EXEC_LINE_REVOKE) {
        exec_lease_shorten(lease, heard.ms);
        require(lease->deadline_ns <= client_now_ns() + heard.ms * NS_PER_MS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct exec_lease lease = {.token = 0};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *rest = text; rest != NULL;) {
        /* Exactly as long as it is, so that AddressSanitizer sees the first byte behind it. */
        char *line = strdup(strsep(&rest, "\n"));
        require(line != NULL);
        check_line(&lease, line);
        free(line);
    }
    free(text);
    return 0;
}
