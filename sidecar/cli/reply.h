#ifndef GAVEL_CLI_REPLY_H
#define GAVEL_CLI_REPLY_H

#include <stdbool.h>
#include <stdint.h>

/* The line that `check` and `watch` answer. libc only, re-entrant. */
#define REPLY_HOLDER_MOST 161 /* "IDENTITY~NONCE" */
#define REPLY_CODE_MOST 31
#define REPLY_TEXT_MOST 300
#define REPLY_TOKEN_MOST UINT64_C(100000000000000)

enum reply_kind { REPLY_BAD, REPLY_LEADER, REPLY_FOLLOWER, REPLY_ERROR };

struct reply {
    enum reply_kind kind;
    uint64_t token;                     /* leader */
    int64_t valid_ns;                   /* leader: counts from before the request was sent */
    int64_t deadline_ns;                /* leader: CLOCK_BOOTTIME */
    char holder[REPLY_HOLDER_MOST + 1]; /* follower; "-": nobody is known */
    char code[REPLY_CODE_MOST + 1];     /* error: "name-needed" */
    char text[REPLY_TEXT_MOST + 1];     /* error: for people, printable ASCII */
};

/* Anything that is not exactly one of the known lines is REPLY_BAD. */
struct reply reply_parse(const char *line);

/* Takes a whole number up to `most`, in digits alone, and the character that must follow it. */
bool reply_number(const char **at, uint64_t most, char end, uint64_t *number);

/* "error CODE TEXT", whatever the request was. */
bool reply_is_error(const char *line, struct reply *reply);

/* True for errors that come from the question: no such election, or one has to be named. */
bool reply_blames_name(const struct reply *reply);

#endif
