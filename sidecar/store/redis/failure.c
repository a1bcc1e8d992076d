#include "store/redis/failure.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    enum redis_failure failure;
} words[] = {
    {"NOSCRIPT", REDIS_FAILURE_NOSCRIPT},     {"READONLY", REDIS_FAILURE_NOT_MASTER},
    {"MASTERDOWN", REDIS_FAILURE_NOT_MASTER}, {"NOAUTH", REDIS_FAILURE_AUTH},
    {"WRONGPASS", REDIS_FAILURE_AUTH},        {"MOVED", REDIS_FAILURE_CLUSTER},
    {"ASK", REDIS_FAILURE_CLUSTER},           {"CLUSTERDOWN", REDIS_FAILURE_CLUSTER},
    {"CROSSSLOT", REDIS_FAILURE_CLUSTER},     {"NOPERM", REDIS_FAILURE_DENIED},
};

const char redis_failure_cluster[] = "a node of a Redis Cluster: cluster endpoint is not supported";

static bool part_of_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The word stands somewhere in the text, not as a part of another. */
static bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == text || !part_of_word(at[-1])) && !part_of_word(at[length])) {
            return true;
        }
    }
    return false;
}

static bool begins_with(const char *text, const char *prefix) {
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

enum redis_failure redis_failure_of(const char *text) {
    /* Our scripts' own errors may name keys, and keys may be called anything. */
    if (has_word(text, "GAVELNOTMASTER")) {
        return REDIS_FAILURE_NOT_MASTER;
    }
    if (has_word(text, "GAVELRECORD") || has_word(text, "GAVELTOKEN")) {
        return REDIS_FAILURE_OTHER;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (has_word(text, words[i].word)) {
            return words[i].failure;
        }
    }
    /* Not the same inside a script: there it is an error of that script. */
    if (begins_with(text, "ERR unknown command") || begins_with(text, "unsupported command") ||
        begins_with(text, "ERR unsupported command")) {
        return REDIS_FAILURE_DENIED;
    }
    return REDIS_FAILURE_OTHER;
}

void redis_failure_explain(char *out, size_t size, enum redis_failure failure, const char *said) {
    if (failure == REDIS_FAILURE_CLUSTER) {
        snprintf(out, size, "%s (%.80s)", redis_failure_cluster, said);
    } else if (failure == REDIS_FAILURE_DENIED && strcasestr(said, "eval") != NULL) {
        snprintf(out, size, "EVAL is needed: connect to Redis itself, allow +eval (%.90s)", said);
    } else {
        snprintf(out, size, "%s", said);
    }
}

void redis_failure_text(char *out, size_t size, const char *text, size_t length) {
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        out[used] = '?';
        if (text[i] >= ' ' && text[i] <= '~') {
            out[used] = text[i];
        }
        used++;
    }
    out[used] = '\0';
}
