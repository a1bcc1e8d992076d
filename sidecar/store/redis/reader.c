#include "store/redis/reader.h"

#include <stdlib.h>

#define UNUSED_BUFFER_MAX 16384

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* Refusing to make an array ends the reply and breaks the reader. */
static void *create_array(const redisReadTask *task, array_size elements) {
    struct redis_reader *reader = task->privdata;
    size_t depth = 1;
    for (const redisReadTask *above = task->parent; above != NULL; above = above->parent) {
        depth++;
    }
    size_t count = (size_t)elements;
    if (depth > REDIS_REPLY_DEPTH_MAX || count > REDIS_REPLY_ELEMENTS_MAX ||
        reader->elements + count > REDIS_REPLY_ELEMENTS_MAX) {
        reader->problem = "a reply with too many elements";
        return NULL;
    }
    reader->elements += count;
    return reader->defaults.createArray(task, elements);
}

void redis_reader_init(struct redis_reader *reader) {
    *reader = (struct redis_reader){.reader = redisReaderCreate()};
    if (reader->reader == NULL) {
        abort();
    }
    reader->defaults = *reader->reader->fn;
    reader->functions = reader->defaults;
    reader->functions.createArray = create_array;
    reader->reader->fn = &reader->functions;
    reader->reader->maxbuf = UNUSED_BUFFER_MAX;
    reader->reader->privdata = reader;
}

void redis_reader_finish(struct redis_reader *reader) {
    redisReaderFree(reader->reader);
    reader->reader = NULL;
}

void redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t size) {
    if (reader->problem == NULL && redisReaderFeed(reader->reader, bytes, size) != REDIS_OK) {
        reader->problem = "a reply that breaks the protocol";
    }
    reader->pending += size;
}

enum redis_reader_result redis_reader_next(struct redis_reader *reader, redisReply **reply) {
    void *result = NULL;
    *reply = NULL;
    if (reader->problem != NULL) {
        return REDIS_READER_BROKEN;
    }
    if (redisReaderGetReply(reader->reader, &result) != REDIS_OK) {
        if (reader->problem == NULL) {
            reader->problem = "a reply that breaks the protocol";
        }
        return REDIS_READER_BROKEN;
    }
    if (result != NULL) {
        reader->elements = 0;
        reader->pending = reader->reader->len - reader->reader->pos;
        *reply = result;
        return REDIS_READER_REPLY;
    }
    if (reader->pending > REDIS_REPLY_BYTES_MAX) {
        reader->problem = "a reply of more than 64 KiB";
        return REDIS_READER_BROKEN;
    }
    return REDIS_READER_NONE;
}
