/* What the client for C is told by a sidecar, through a socket: the first byte says how it is cut
 * into pieces. Lines are given out as they were sent, and numbers only where they can be calculated
 * with. */
#include "gavel_inside.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_promise(const int64_t *numbers) {
    struct gavel_promise promise = gavel_pushed(numbers);
    if (promise.token != 0) {
        require(promise.token == (uint64_t)numbers[0]);
        require(gavel_promise_left_ns(&promise) <= numbers[1] * GAVEL_NS_PER_MS);
    }
}

static void check_line(const char *line) {
    static const struct {
        const char *verb;
        size_t count;
    } known[] = {{"lease", 4}, {"revoke", 2}, {"beat", 1}, {"leader", 3}};
    int64_t numbers[4];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        memset(numbers, 0, sizeof numbers);
        if (!gavel_numbers(line, known[i].verb, known[i].count, numbers)) {
            continue;
        }
        require(numbers[0] >= 0 && numbers[1] >= 0 && numbers[2] >= 0 && numbers[3] >= 0);
        if (known[i].count >= 3) {
            check_promise(numbers);
        } else if (known[i].count == 1) {
            require(numbers[0] * GAVEL_NS_PER_MS / 4 >= 0);
        }
        require(numbers[3] * GAVEL_NS_PER_MS >= 0); /* the time that a lease names last */
    }
}

/* The lines that are there; false: the connection would be given up. */
static bool take(struct gavel_line *line, size_t *taken) {
    const char *text;
    int got;
    while ((got = gavel_line_read(line, 0, &text)) == 1) {
        require(strlen(text) < GAVEL_LINE_MOST && strchr(text, '\n') == NULL);
        *taken += strlen(text) + 1;
        char *copy = strdup(text); /* exactly as long as it is */
        require(copy != NULL);
        check_line(copy);
        free(copy);
    }
    return got == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int ends[2];
    size_t taken = 0;
    if (size == 0) {
        return 0;
    }
    size_t piece = (data[0] & 1) != 0 ? size : data[0] + 1U;
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    struct gavel_line line = {.fd = ends[0], .wake = -1};
    for (size_t at = 1; at < size; at += piece) {
        size_t left = size - at;
        size_t length = left < piece ? left : piece;
        require(send(ends[1], data + at, length, MSG_NOSIGNAL) == (ssize_t)length);
        if (!take(&line, &taken)) {
            break;
        }
    }
    require(taken < size);
    gavel_line_close(&line);
    (void)close(ends[1]);
    return 0;
}
