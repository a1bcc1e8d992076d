#include "store/redis/release.h"

#include "store/redis/names.h"

#include <string.h>

#define TOKEN_DIGITS_MOST 16

static bool read_text(const redisReply *text, bool *clean) {
    size_t digits = strspn(text->str, "0123456789");
    if (digits == 0 || digits > TOKEN_DIGITS_MOST || strlen(text->str) != text->len) {
        return false;
    }
    *clean = strcmp(text->str + digits, " clean") == 0;
    return *clean || strcmp(text->str + digits, " unclean") == 0;
}

bool redis_release_read(const redisReply *message, const char *namespace_,
                        struct redis_release *release) {
    if (message->type != REDIS_REPLY_ARRAY || message->elements != 3 ||
        message->element[1]->type != REDIS_REPLY_STRING ||
        message->element[2]->type != REDIS_REPLY_STRING) {
        return false;
    }
    const redisReply *channel = message->element[1];
    release->election =
        redis_names_election(channel->str, channel->len, namespace_, &release->length);
    return release->election != NULL && read_text(message->element[2], &release->clean);
}
