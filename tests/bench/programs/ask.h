#ifndef GAVEL_BENCH_ASK_H
#define GAVEL_BENCH_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who is asked: a server, what to ask it, and how its answer ends. */
struct target {
    const char *address; /* a Unix socket's path, or a port on 127.0.0.1 */
    bool http;           /* the answer is HTTP with a Content-Length, else one line */
    const char *question;
    size_t question_length;
};

int64_t now_ns(void); /* CLOCK_MONOTONIC */

/* A connected blocking socket; ends the process when it cannot. */
int target_connect(const struct target *target);

/* Where the first answer in the buffer ends, 0: it is not complete. The buffer ends with a NUL. */
size_t target_answer_end(const struct target *target, const char *buffer, size_t length);

/* Asks over `clients` connections at once, one question under way on each, for so long; gives how
 * many were answered. */
struct crowd;
struct crowd *crowd_create(const struct target *target, unsigned clients);
uint64_t crowd_ask(struct crowd *crowd, int64_t duration_ns);

#endif
