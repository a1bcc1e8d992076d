#ifndef GAVEL_PUBLISH_SOCKET_PARTS_H
#define GAVEL_PUBLISH_SOCKET_PARTS_H

#include "publish/socket.h"
#include "publish/socket_place.h"

/*
 * What the files of the socket server share: socket.c (life and limits), socket_client.c (bytes of
 * one connection), socket_request.c (verbs), socket_watch.c and socket_attach.c
 * (connections that are taken over). Loop thread only.
 */
#define SOCKET_LINE_MAX 512 /* bytes of a request, without its end */
/* "follower HOLDER", or "leader" and three numbers. */
#define SOCKET_CHECK_LINE_SIZE (HOLDER_MAX + 64)

/* The numbers that bound what clients can take. */
struct socket_limits {
    size_t clients;            /* connections that are served */
    size_t watchers;           /* of those, how many may watch */
    size_t refused;            /* those that were told an error and may still read it */
    uint64_t first_request_ms; /* how long a newcomer may stay silent */
    uint64_t idle_ms;          /* idle for that long gives way to a newcomer when it is full */
    uint64_t linger_ms;        /* how long a refused client may take to read why */
    uint64_t stuck_ms;         /* how long a client may leave a line unread */
    uint64_t accept_pause_ms;  /* after running out of descriptors */
};
extern const struct socket_limits socket_limits_default;

/* socket_create() with other limits. */
struct socket_server *socket_create_limited(const struct socket_setup *setup,
                                            const struct socket_limits *limits,
                                            struct error *error);

enum socket_phase {
    PHASE_SERVING,   /* takes requests */
    PHASE_RESIGNING, /* waits for the end of a resignation */
    PHASE_WATCHING,
    PHASE_ATTACHED, /* stands for the application */
    PHASE_REFUSED,  /* was told an error; what it still sends is thrown away */
    PHASE_CLOSING,
};
#define PHASE_COUNT 6

enum socket_fault {
    FAULT_UNKNOWN_ELECTION,
    FAULT_NAME_NEEDED,
    FAULT_BAD_REQUEST,
    FAULT_TOO_LONG,
    FAULT_BUSY,
    FAULT_TOO_MANY,
    FAULT_SHUTTING_DOWN,
};

/* What an ATTACHED connection has to be told, and how it ends. */
struct socket_attach {
    bool by_peer;         /* the peer has ended it */
    uint64_t last_number; /* of the clients that had come before it attached */
    bool deaf;            /* it does not take what is written: its end, or it is cut off soon */
    bool ok;              /* lines that are due, in this order */
    bool revoke;
    bool beat; /* how often it has to be heard of */
    bool lease;
    bool leases;  /* wants to be told of the lease */
    bool resigns; /* waits for the end of its resignation */
    uint64_t revoke_token;
    int64_t revoke_by_ns; /* BOOTTIME */
    int64_t leased_ns;    /* the deadline, and the token, of the last line about the lease */
    uint64_t leased_token;
};

/* One connection. Freed by the last close callback, so it may be closed at any moment, also while
 * the list of clients is walked. */
struct socket_client {
    struct socket_server *server;
    struct socket_client *next, **link;
    uv_pipe_t pipe;
    uv_timer_t timer; /* what it waits for depends on the phase, socket_client_arm() */
    uv_write_t write;
    uv_shutdown_t shutdown;
    unsigned open_handles;
    enum socket_phase phase;
    bool served;        /* has completed a request */
    bool processing;    /* its requests are being read right now */
    uint64_t active_ms; /* uv_now() at connect, later of the last request */
    char *unsent;       /* what the kernel has not taken yet; NULL: nothing */

    pid_t pid;                           /* the peer's; 0: not visible from here */
    uint64_t number;                     /* grows with each that came */
    struct board_entry *entry;           /* RESIGNING, WATCHING, ATTACHED */
    int64_t push_ns;                     /* WATCHING: BOOTTIME of the next line; NEVER_NS */
    bool stale;                          /* WATCHING: changed while a line was unsent */
    char pushed[SOCKET_CHECK_LINE_SIZE]; /* WATCHING: the latest line */

    struct socket_attach attach; /* ATTACHED */

    size_t length; /* of `input` */
    char input[2 * SOCKET_LINE_MAX];
};

struct socket_server {
    struct socket_setup setup;
    struct socket_limits limits;
    struct socket_place place;
    struct board_observer observer;
    uv_poll_t listener;
    uv_timer_t pause; /* until accepting goes on */
    size_t open_handles;
    uint64_t last_number;
    size_t phases[PHASE_COUNT]; /* how many clients are in each */
    struct socket_client *clients;
    struct socket_client **attached; /* one an election; NULL: none */
    bool draining;
    void (*closed)(void *context);
    void *closed_context;
};

/* One handle less; the last one of a closing server ends it. */
void socket_server_unref(struct socket_server *server);

/* Takes over a connected descriptor and serves it. Where that fails it comes back closing. */
struct socket_client *socket_client_create(struct socket_server *server, int fd);
void socket_client_close(struct socket_client *client);
/* Something has come that was not read yet: perhaps a request. */
bool socket_client_has_input(const struct socket_client *client);
void socket_client_set_phase(struct socket_client *client, enum socket_phase phase);
/* Nothing may be unsent. What the kernel does not take at once is kept. May close the client. */
void socket_client_send(struct socket_client *client, const char *text, size_t length);
/* Sends an error line. */
void socket_client_fault(struct socket_client *client, enum socket_fault fault, const char *text);
/* Sends an error line and ends the connection once the client had the time to read it. */
void socket_client_refuse(struct socket_client *client, enum socket_fault fault, const char *text);
/* Goes on with what has been received. */
void socket_client_process(struct socket_client *client);
void socket_client_count(struct socket_client *client, enum counter_code code);
/* When it is next looked at: a newcomer that stays silent, a refused client that does not go, a
 * line that is not taken, or the next line to push. */
void socket_client_arm(struct socket_client *client, uint64_t ms);

/* One request, without its line end. */
void socket_request(struct socket_client *client, const char *line, size_t length);
/* The line of `check`; returns its length. */
size_t socket_check_line(struct socket_client *client, const struct board_entry *entry,
                         const struct answer *answer, char *line, size_t size);

/* The answer of this moment; an attached application's is kept apart. */
struct answer socket_answer(struct socket_client *client, struct board_entry *entry);

/* Takes the connection over: pushes the first line. */
void socket_watch_start(struct socket_client *client, struct board_entry *entry);
/* Pushes the state of this moment, or remembers to. */
void socket_watch_push(struct socket_client *client);
/* The unsent line is gone. */
void socket_watch_flushed(struct socket_client *client);

/* Takes the connection over: it stands for the application. */
void socket_attach_start(struct socket_client *client, struct board_entry *entry);
/* One line from it. */
void socket_attach_line(struct socket_client *client, const char *line, size_t length);
/* Sends what is due, or as much of it as is taken. */
void socket_attach_push(struct socket_client *client);
void socket_attach_refresh(struct socket_client *client);
/* It is no longer attached. */
void socket_attach_ended(struct socket_client *client);
/* Its resignation is complete. */
void socket_attach_resigned(struct socket_client *client);
/* The client is of the same process as the attached application of that election. */
bool socket_attach_is_of(const struct socket_client *client, const struct board_entry *entry);

#endif
