#ifndef GAVEL_STORE_REDIS_GATE_H
#define GAVEL_STORE_REDIS_GATE_H

#include "store/redis/handshake.h"

/*
 * The way to one server: resolve, connect, then the handshake, all within one deadline. Several
 * addresses are tried in turn, the one that worked last goes first.
 */
struct redis_gate_setup {
    uv_loop_t *loop;
    const struct redis_url *url;
    const struct store_secrets *secrets; /* may be NULL; read at each connect, they win */
    const struct redis_tls *tls;         /* NULL: the URL does not ask for TLS */
    struct redis_resolver *resolver;
    struct store_lives *lives;
    bool requests; /* for requests: SELECT and ROLE too */
    bool sentinel; /* to a Sentinel, to ask where the master is */
    /* Never called before redis_gate_start() returns. The stream is the callee's. */
    void (*on_open)(void *context, struct redis_stream *stream, uint32_t warnings);
    void (*on_failed)(void *context, enum redis_gate_end end, const char *text);
    void *context;
};

#define REDIS_GATE_TEXT REDIS_HANDSHAKE_TEXT
#define REDIS_GATE_WHERE 128

enum redis_gate_state {
    REDIS_GATE_IDLE,
    REDIS_GATE_STARTING,
    REDIS_GATE_RESOLVING,
    REDIS_GATE_CONNECTING,
    REDIS_GATE_ASKING,
};

/* The caller's memory; it must outlive what is counted in `lives`. */
struct redis_gate {
    struct redis_gate_setup setup;
    uv_timer_t timer;
    enum redis_gate_state state;
    int64_t deadline_ns; /* BOOTTIME */
    int64_t limit_ns;    /* BOOTTIME; for the address that is being tried */
    struct redis_addresses addresses;
    size_t next_address;
    struct sockaddr_storage worked; /* zeroed: none yet */
    struct redis_stream *stream;
    struct redis_handshake handshake; /* the newest; also what it found out */
    char where[REDIS_GATE_WHERE];     /* the address that is being tried, or was opened */
    enum redis_gate_end end;          /* the worst failure so far, and its text */
    char text[REDIS_GATE_TEXT];
    bool retried;        /* with other secrets than those that were refused */
    unsigned generation; /* of the secrets that were used last */
};

void redis_gate_init(struct redis_gate *gate, const struct redis_gate_setup *setup);
/* Another server's name, for the next start. */
void redis_gate_aim(struct redis_gate *gate, struct redis_resolver *resolver);
/* Starts; on_open or on_failed is called exactly once, unless it is cancelled. When user or
 * password are refused both are read again: others than those are tried at once, and the same ones
 * are read once more before the next start. */
void redis_gate_start(struct redis_gate *gate, int64_t budget_ns);
void redis_gate_cancel(struct redis_gate *gate);
/* The server has refused user or password on a connection that was open. */
void redis_gate_distrust_secrets(struct redis_gate *gate);
/* Cancels and gives up its handles, for good. */
void redis_gate_close(struct redis_gate *gate);

#endif
