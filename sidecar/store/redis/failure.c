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
    if (strncasecmp(text, "ERR unknown command", strlen("ERR unknown command")) == 0) {
        return REDIS_FAILURE_DENIED;
    }
    return REDIS_FAILURE_OTHER;
}

static const char *hint_for(const char *text) {
    enum redis_failure failure = redis_failure_of(text);
    if (failure == REDIS_FAILURE_CLUSTER) {
        return "Redis Cluster: cluster endpoint is not supported, use a Redis outside of cluster "
               "mode";
    }
    if (failure == REDIS_FAILURE_DENIED || strstr(text, "executing the script can't") != NULL) {
        return "gavel needs EVAL, the commands of its scripts and the keys gavel:*";
    }
    if (strstr(text, "after non deterministic commands") != NULL) {
        return "this Redis is too old: gavel needs Redis 4 or later";
    }
    return NULL;
}

void redis_failure_explain(char *out, size_t size, const char *text) {
    char said[96];
    const char *hint = hint_for(text);
    /* Some servers repeat the arguments, which are a whole script here. */
    const char *arguments = strstr(text, ", with args beginning with");
    size_t length = arguments != NULL ? (size_t)(arguments - text) : strlen(text);
    if (hint == NULL) {
        redis_failure_text(out, size, text, length);
        return;
    }
    redis_failure_text(said, sizeof said, text, length);
    snprintf(out, size, "%s (%s)", hint, said);
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
