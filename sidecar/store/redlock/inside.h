#ifndef GAVEL_STORE_REDLOCK_INSIDE_H
#define GAVEL_STORE_REDLOCK_INSIDE_H

/* What the files of the Redlock store share; nobody else includes this. */

#include "election/round.h"
#include "store/redis/names.h"
#include "store/redlock/list.h"
#include "store/store.h"

struct redlock_store;

struct redlock_node {
    struct redlock_store *owner;
    size_t index;
    struct store *store;
    struct store_status status;
    char text[sizeof((struct store_event *)0)->text]; /* of its last answer that was unsure */
};

struct redlock_election {
    struct round round;
    enum store_event_type type; /* of the present operation */
};

struct redlock_store {
    struct store base;
    struct store_setup setup;
    struct redlock_list list;
    struct redlock_node nodes[QUORUM_NODES_MAX];
    struct redlock_election *elections;
    uv_timer_t timer;
    int64_t armed_ns; /* BOOTTIME that it is set to */
    bool late;        /* the timer came late; one turn of the loop for what has arrived already */
    bool closing;
    size_t alive; /* nodes and the timer that are not closed yet */
    void (*closed)(void *context);
    void *closed_context;
};

/* Events of a node's store; its context is the node. */
void redlock_on_event(void *context, const struct store_event *event);
/* Carries requests to the nodes and answers to the owner, as far as there are any. */
void redlock_drive(struct redlock_store *store, size_t election);
/* Sets the timer to what comes next. */
void redlock_arm(struct redlock_store *store);
/* What the process shows, from what the nodes show; `why` it is not up, if none of them tells. */
void redlock_show(struct redlock_store *store, bool up, const char *why);

#endif
