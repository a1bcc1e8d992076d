#ifndef GAVEL_CLI_ASK_H
#define GAVEL_CLI_ASK_H

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/reply.h"

/* Asks for one line within the arguments' timeout. False: it has printed why there is none, and
 * *status is what to exit with. `line` has CLIENT_LINE_MOST + 1 bytes. */
bool ask_line(const struct arguments *arguments, const char *verb, char *line, int *status);

/* Prints the error that a sidecar answered; returns the exit status: 64 or 2. */
int ask_refused(const struct arguments *arguments, const struct reply *reply);

/* Prints that there was no answer, and why; returns the exit status, 2. */
int ask_failed(const struct arguments *arguments, const char *why);

/*
 * Whether this replica leads: the reply to `check`, where a leader whose validity is over by now,
 * counted from before the request was sent, is a follower of nobody known. *left_ns is what is left
 * of it.
 */
enum client_result ask_check(const struct arguments *arguments, int64_t deadline_ns,
                             struct reply *reply, int64_t *left_ns);

/* Prints "leader TOKEN VALID_MS" or "follower HOLDER". Returns 0 when leader, else 1. */
int ask_print(const struct reply *reply, int64_t left_ns);

#endif
