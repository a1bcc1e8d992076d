#include "store/redis/names.h"

#include <stdio.h>
#include <string.h>

#define RELEASED ":released"

static bool put(char *out, const char *space, const char *suffix) {
    int length = snprintf(out, REDIS_NAME_SIZE, "%s%s", space, suffix);
    return length > 0 && length < REDIS_NAME_SIZE;
}

bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election) {
    int length = snprintf(names->space, sizeof names->space, "gavel:{%s/%s}", namespace_, election);
    return length > 0 && length < (int)sizeof names->space &&
           put(names->lease, names->space, ":lease") &&
           put(names->record, names->space, ":record") &&
           put(names->channel, names->space, RELEASED);
}

void redis_names_space(char *text, size_t size, const char *namespace_, const char *election) {
    snprintf(text, size, "gavel:{%s/%s}", namespace_, election);
}

const char *redis_names_election(const char *channel, size_t size, const char *namespace_,
                                 size_t *length) {
    static const char suffix[] = "}" RELEASED;
    char prefix[REDIS_NAME_SIZE];
    size_t before = (size_t)snprintf(prefix, sizeof prefix, "gavel:{%s/", namespace_);
    size_t after = strlen(suffix);
    if (before >= sizeof prefix || size < before + after || memcmp(channel, prefix, before) != 0 ||
        memcmp(channel + size - after, suffix, after) != 0) {
        return NULL;
    }
    *length = size - before - after;
    return channel + before;
}
