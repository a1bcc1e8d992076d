#ifndef GAVEL_STORE_REDIS_READER_H
#define GAVEL_STORE_REDIS_READER_H

#include <hiredis/hiredis.h>
#include <stddef.h>

/*
 * hiredis' reply reader with bounds on what a server may make it keep: bytes, elements, depth.
 * Whatever breaks them, or the protocol, breaks the reader for good. The caller's memory.
 */
#define REDIS_REPLY_BYTES_MAX 65536
#define REDIS_REPLY_ELEMENTS_MAX 1024
#define REDIS_REPLY_DEPTH_MAX 3

struct redis_reader {
    redisReader *reader;
    redisReplyObjectFunctions defaults;  /* how hiredis itself makes replies */
    redisReplyObjectFunctions functions; /* the same with bounds on arrays */
    size_t elements;                     /* in the reply that is being read */
    size_t pending;                      /* bytes since the last whole reply */
    const char *problem;                 /* NULL: none; a static string */
};

enum redis_reader_result {
    REDIS_READER_NONE,   /* more bytes are needed */
    REDIS_READER_REPLY,  /* *reply is the caller's, to be given to freeReplyObject() */
    REDIS_READER_BROKEN, /* see `problem` */
};

void redis_reader_init(struct redis_reader *reader);
void redis_reader_finish(struct redis_reader *reader);

/* Takes bytes in, at most REDIS_REPLY_BYTES_MAX at a time; call redis_reader_next() until NONE
 * after each. */
void redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t size);
enum redis_reader_result redis_reader_next(struct redis_reader *reader, redisReply **reply);

#endif
