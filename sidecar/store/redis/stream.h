#ifndef GAVEL_STORE_REDIS_STREAM_H
#define GAVEL_STORE_REDIS_STREAM_H

#include "store/lives.h"
#include "store/redis/tls.h"

#include <hiredis/hiredis.h>
#include <uv.h>

/*
 * One connection: bytes out, replies in. On the heap; it frees itself after redis_stream_close(),
 * by its last callback. No function here calls the owner back before it returns.
 */
struct redis_stream;

/* Told to the owner, never after redis_stream_close(). The owner may close from inside any. */
struct redis_stream_events {
    /* Connected, and the TLS handshake is over if there is one. Who takes over an open stream is
     * not told, and needs none. */
    void (*on_open)(void *context);
    void (*on_reply)(void *context, const redisReply *reply); /* good during the call only */
    /* It could not be opened or is of no use any more: close it. `why` is for people. */
    void (*on_down)(void *context, const char *why);
};

/* Begin to connect. NULL: it cannot even be tried, *why says why (a static string). */
struct redis_stream *redis_stream_tcp(uv_loop_t *loop, const struct sockaddr *address,
                                      struct store_lives *lives, const char **why);
struct redis_stream *redis_stream_local(uv_loop_t *loop, const char *path,
                                        struct store_lives *lives, const char **why);

/* From now on every byte goes through the session, which becomes the stream's. Only right after it
 * was made. */
void redis_stream_secure(struct redis_stream *stream, struct redis_tls_session *session);

/* Says who owns it from now on. */
void redis_stream_own(struct redis_stream *stream, const struct redis_stream_events *events,
                      void *context);

/* Hands bytes from redis_command() to the socket; they belong to the stream from now on. False: it
 * is broken, close it; on_down does not come for that. */
bool redis_stream_send(struct redis_stream *stream, char *bytes, size_t size);

/* What it has been waiting for, when that has not come in time; a static string. */
const char *redis_stream_late(const struct redis_stream *stream);

/* Gives it up at once, whatever is under way. */
void redis_stream_close(struct redis_stream *stream);

#endif
