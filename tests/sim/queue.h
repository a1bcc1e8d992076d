#ifndef GAVEL_SIM_QUEUE_H
#define GAVEL_SIM_QUEUE_H

#include "model_store.h"

struct world;
struct message;

/* What can happen in a world. */
enum message_type {
    MESSAGE_TICK,    /* a host's timer */
    MESSAGE_SEND,    /* a host's request leaves it */
    MESSAGE_TIMEOUT, /* a host's attempt is over */
    MESSAGE_REPLY,   /* reaches a host */
    MESSAGE_WAKE,    /* reaches a host: the lock was given back */
    MESSAGE_LOST,    /* reaches a host: its lock is gone */
    MESSAGE_LEAVE,   /* a host is asked to drain or to resign */
    MESSAGE_REQUEST, /* reaches the store */
    MESSAGE_APP,     /* the application that is attached to a host speaks */
    MESSAGE_READ,    /* an application on a host asks */
    MESSAGE_RESUME,  /* a host runs again */
    MESSAGE_START,   /* a process starts */
    MESSAGE_CALL,    /* the next step of a fault or a scenario */
};

struct message {
    enum message_type type;
    int64_t at_ns; /* true time */
    int host;
    unsigned epoch;  /* the process that it is for */
    uint64_t number; /* of the operation, or of the timer */
    bool flag;       /* WAKE: clean. REQUEST: nobody hears the reply. LEAVE: drain */
    int word;        /* APP: enum app_event, or what it does */
    unsigned life;   /* APP: which application */
    void (*call)(struct world *world, const struct message *message);
    union {
        struct lock_request request;
        struct store_reply reply;
    } body;
};

#define QUEUE_MOST 1024

/* Messages in order of time, those of one moment in order of arrival. No allocation. */
struct queue {
    struct message slots[QUEUE_MOST];
    int spare[QUEUE_MOST];
    int spare_count;
    struct {
        int64_t at_ns;
        uint64_t order;
        int slot;
    } heap[QUEUE_MOST];
    int count;
    uint64_t order;
};

void queue_init(struct queue *queue);

/* Copies the message. A full queue drops it: a network may. */
void queue_push(struct queue *queue, const struct message *message);

/* False when it is empty. */
bool queue_pop(struct queue *queue, struct message *message);

/* Drops every message of the type. */
void queue_drop(struct queue *queue, enum message_type type);

#endif
