#include "store/redis/release.h"

#include "store/redis/answer.h"
#include "store/redis/names.h"

#include <string.h>

#define TOKEN_DIGITS_MOST 16

/* The rest of `text` behind `word`; NULL: it does not begin so. */
static const char *after(const char *text, const char *word) {
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 ? text + length : NULL;
}

static bool read_text(const redisReply *text, struct redis_release *release) {
    size_t digits = strspn(text->str, "0123456789");
    memset(release->nonce, 0, sizeof release->nonce);
    if (digits == 0 || digits > TOKEN_DIGITS_MOST || strlen(text->str) != text->len) {
        return false;
    }
    const char *rest = after(text->str + digits, " clean");
    release->clean = rest != NULL;
    rest = release->clean ? rest : after(text->str + digits, " unclean");
    if (rest == NULL || *rest == '\0') {
        return rest != NULL;
    }
    return *rest == ' ' && redis_nonce_read(rest + 1, strlen(rest + 1), release->nonce);
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
    return release->election != NULL && read_text(message->element[2], release);
}
