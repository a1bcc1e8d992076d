/* What a server says, as it arrives: the first byte says which script is answered and how the bytes
 * are cut into pieces. Only what has the exact shape of an answer is one, and then it is within the
 * bounds that the election relies on. */
#include "store/redis/answer.h"
#include "store/redis/failure.h"
#include "store/redis/reader.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_answer(const redisReply *answer, enum store_event_type type) {
    static const struct store_reply nothing;
    struct store_reply reply;
    if (!redis_answer_read(answer, type, &reply)) {
        require(memcmp(&reply, &nothing, sizeof reply) == 0);
        return;
    }
    require(answer->type == REDIS_REPLY_ARRAY);
    require(reply.outcome == OUTCOME_YES || reply.outcome == OUTCOME_NO);
    require(reply.outcome == OUTCOME_NO || (reply.token > 0 && !reply.held));
    require(reply.outcome == OUTCOME_YES || reply.prior == PRIOR_NONE);
    require(reply.token <= TOKEN_MAX);
    require(reply.longest_ttl_ns >= 0 && reply.longest_ttl_ns <= 3600 * NS_PER_S);
    require(reply.server_now_us >= 0 && reply.prior_end_us >= 0);
    require(memchr(reply.server, '\0', sizeof reply.server) != NULL);
    require(memchr(reply.holder, '\0', sizeof reply.holder) != NULL);
    for (const char *at = reply.holder; *at != '\0'; at++) {
        require(*at > ' ' && *at <= '~' && *at != '"');
    }
}

static void check_error(const redisReply *reply) {
    char text[200];
    (void)redis_failure_of(reply->str);
    redis_failure_text(text, sizeof text, reply->str, reply->len);
    for (const char *at = text; *at != '\0'; at++) {
        require(*at >= ' ' && *at <= '~');
    }
}

/* False: the connection would be given up. */
static bool take_replies(struct redis_reader *reader, enum store_event_type type) {
    redisReply *reply = NULL;
    enum redis_reader_result result = REDIS_READER_NONE;
    while ((result = redis_reader_next(reader, &reply)) == REDIS_READER_REPLY) {
        if (reply->type == REDIS_REPLY_ERROR) {
            check_error(reply);
        } else {
            check_answer(reply, type);
        }
        freeReplyObject(reply);
    }
    require(result == REDIS_READER_NONE || reader->problem != NULL);
    return result == REDIS_READER_NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const enum store_event_type types[] = {STORE_ACQUIRED, STORE_RENEWED, STORE_RELEASED};
    struct redis_reader reader;
    if (size == 0) {
        return 0;
    }
    enum store_event_type type = types[data[0] % 3];
    size_t piece = data[0] / 3 % 3 == 0 ? size : data[0] / 9 + 1U;
    redis_reader_init(&reader);
    for (size_t at = 1; at < size; at += piece) {
        size_t left = size - at;
        redis_reader_feed(&reader, (const char *)data + at, left < piece ? left : piece);
        if (!take_replies(&reader, type)) {
            break;
        }
    }
    redis_reader_finish(&reader);
    return 0;
}
