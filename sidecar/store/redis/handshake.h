#ifndef GAVEL_STORE_REDIS_HANDSHAKE_H
#define GAVEL_STORE_REDIS_HANDSHAKE_H

#include "store/redis/sentinel.h"
#include "store/redis/stream.h"
#include "store/store.h"

/*
 * What is asked on a new connection before it may be used, and how each answer is judged. All
 * questions go out at once. No memory of its own.
 */
#define REDIS_HANDSHAKE_TEXT 160
#define REDIS_HANDSHAKE_COMMANDS 5
#define REDIS_VERSION_TEXT 40

enum redis_gate_end {
    REDIS_GATE_TIMEOUT,     /* no answer within the deadline */
    REDIS_GATE_UNREACHABLE, /* refused by the network, or not Redis at all */
    REDIS_GATE_REFUSED,     /* refused by the server */
    REDIS_GATE_AUTH,        /* user or password */
};

struct redis_handshake_setup {
    const struct redis_url *url;
    const struct store_secrets *secrets; /* may be NULL; they win over the URL */
    const char *host;                    /* where it is connected to, for texts */
    uint16_t port;
    bool requests; /* AUTH, ROLE, SELECT, INFO: for a server that requests are sent to */
    bool sentinel; /* AUTH and where the master is: for a Sentinel; neither of both: AUTH only */
};

struct redis_handshake {
    struct redis_handshake_setup setup;
    int commands[REDIS_HANDSHAKE_COMMANDS]; /* sent, in order of their answers */
    size_t count;
    size_t answered;
    const char *auth_problem; /* AUTH was refused, which is not the end yet; NULL: it was not */
    uint32_t warnings;
    char version[REDIS_VERSION_TEXT]; /* "redis 7.0.15"; empty: unknown */
    struct redis_master master;       /* what a Sentinel said */
    enum redis_gate_end end;          /* why it failed */
    char problem[REDIS_HANDSHAKE_TEXT];
};

enum redis_handshake_result {
    REDIS_HANDSHAKE_MORE, /* answers are missing */
    REDIS_HANDSHAKE_DONE, /* the connection may be used */
    REDIS_HANDSHAKE_FAILED,
};

/* Sends all of it. */
enum redis_handshake_result redis_handshake_begin(struct redis_handshake *handshake,
                                                  const struct redis_handshake_setup *setup,
                                                  struct redis_stream *stream);
/* The next answer. */
enum redis_handshake_result redis_handshake_take(struct redis_handshake *handshake,
                                                 const redisReply *reply);

#endif
