/* What a server or a Sentinel pushes to who has subscribed. What is taken for news of a release or
 * of a new master is within the message, and within its bounds. */
#include "store/redis/reader.h"
#include "store/redis/release.h"
#include "store/redis/sentinel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_release(const redisReply *message) {
    struct redis_release release;
    if (!redis_release_read(message, "shop", &release)) {
        return;
    }
    const redisReply *channel = message->element[1];
    const redisReply *text = message->element[2];
    require(release.election > channel->str);
    require(release.election + release.length < channel->str + channel->len);
    require(text->str[0] >= '0' && text->str[0] <= '9');
    size_t word = release.clean ? strlen(" clean") : strlen(" unclean");
    size_t digits = strspn(text->str, "0123456789");
    bool told = text->len == digits + word + 1 + (size_t)2 * NONCE_BYTES;
    static const unsigned char none[NONCE_BYTES];
    require(digits <= 16 && (told || text->len == digits + word));
    require(told || memcmp(release.nonce, none, NONCE_BYTES) == 0);
}

static void check_switch(const redisReply *message) {
    struct redis_master master;
    if (message->type != REDIS_REPLY_ARRAY || message->elements != 3 ||
        message->element[2]->type != REDIS_REPLY_STRING ||
        !redis_master_read_switch(message->element[2]->str, "mine", &master)) {
        return;
    }
    require(memchr(master.host, '\0', sizeof master.host) != NULL && master.host[0] != '\0');
    require(master.port != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redis_reader reader;
    redisReply *reply = NULL;
    redis_reader_init(&reader);
    redis_reader_feed(&reader, (const char *)data, size);
    while (redis_reader_next(&reader, &reply) == REDIS_READER_REPLY) {
        check_release(reply);
        check_switch(reply);
        freeReplyObject(reply);
    }
    redis_reader_finish(&reader);
    return 0;
}
