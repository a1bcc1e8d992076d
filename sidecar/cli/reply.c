#include "cli/reply.h"

#include <stddef.h>
#include <string.h>

#define VALID_MOST_MS UINT64_C(3600000) /* no lease is longer */

bool reply_number(const char **at, uint64_t most, char end, uint64_t *number) {
    const char *digits = *at;
    *number = 0;
    while (**at >= '0' && **at <= '9') {
        unsigned digit = (unsigned)(**at - '0');
        if (*number > (most - digit) / 10) {
            return false;
        }
        *number = *number * 10 + digit;
        (*at)++;
    }
    if (*at == digits || **at != end) {
        return false;
    }
    *at += end != '\0' ? 1 : 0;
    return true;
}

static bool take_leader(const char *at, struct reply *reply) {
    uint64_t valid_ms;
    uint64_t deadline_ns;
    if (!reply_number(&at, REPLY_TOKEN_MOST, ' ', &reply->token) || reply->token == 0 ||
        !reply_number(&at, VALID_MOST_MS, ' ', &valid_ms) ||
        !reply_number(&at, INT64_MAX, '\0', &deadline_ns)) {
        return false;
    }
    reply->valid_ns = (int64_t)valid_ms * 1000000;
    reply->deadline_ns = (int64_t)deadline_ns;
    return true;
}

/* Copies a word of visible ASCII; false: empty, too long, or something else is in it. */
static bool take_word(const char *at, size_t length, char *word, size_t most) {
    if (length == 0 || length > most) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (at[i] <= ' ' || at[i] > '~') {
            return false;
        }
        word[i] = at[i];
    }
    word[length] = '\0';
    return true;
}

bool reply_is_error(const char *line, struct reply *reply) {
    static const char verb[] = "error ";
    if (strncmp(line, verb, sizeof verb - 1) != 0) {
        return false;
    }
    const char *code = line + sizeof verb - 1;
    size_t length = strcspn(code, " ");
    if (!take_word(code, length, reply->code, REPLY_CODE_MOST)) {
        return false;
    }
    const char *text = code + length;
    text += *text == ' ' ? 1 : 0;
    size_t used = 0;
    for (; *text != '\0' && used < REPLY_TEXT_MOST; text++) {
        reply->text[used++] = (char)(*text >= ' ' && *text <= '~' ? *text : '?');
    }
    reply->text[used] = '\0';
    reply->kind = REPLY_ERROR;
    return true;
}

struct reply reply_parse(const char *line) {
    static const char leader[] = "leader ";
    static const char follower[] = "follower ";
    struct reply reply = {.kind = REPLY_BAD};
    if (strncmp(line, leader, sizeof leader - 1) == 0) {
        if (take_leader(line + sizeof leader - 1, &reply)) {
            reply.kind = REPLY_LEADER;
        }
    } else if (strncmp(line, follower, sizeof follower - 1) == 0) {
        const char *holder = line + sizeof follower - 1;
        if (take_word(holder, strlen(holder), reply.holder, REPLY_HOLDER_MOST)) {
            reply.kind = REPLY_FOLLOWER;
        }
    } else {
        (void)reply_is_error(line, &reply);
    }
    return reply;
}

bool reply_blames_name(const struct reply *reply) {
    return strcmp(reply->code, "unknown-election") == 0 || strcmp(reply->code, "name-needed") == 0;
}
