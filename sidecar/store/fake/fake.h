#ifndef GAVEL_STORE_FAKE_FAKE_H
#define GAVEL_STORE_FAKE_FAKE_H

#include "store/store.h"

/*
 * A store in memory, for tests: a server that several stores of this process connect to with the
 * URL "fake:NAME", and knobs for everything that a network and a server can do wrong. Its locks
 * expire by CLOCK_BOOTTIME, its record follows the rules of a Redis server. One thread.
 */

enum fake_fault {
    FAKE_FINE,
    FAKE_LOSE_REQUEST, /* never arrives */
    FAKE_LOSE_REPLY,   /* is carried out, but nobody hears of it */
    FAKE_REFUSE,       /* the server answers with an error */
};

struct fake_lock {
    char key[256]; /* "NS/NAME" */

    bool held;
    unsigned char nonce[NONCE_BYTES];
    char holder[IDENTITY_MAX + 1];
    int64_t expires_boot_ns;
    enum prior prior; /* what the grant was told, kept for its retries */
    enum prior_doubt doubt;

    bool recorded;
    bool clean;
    uint64_t token;
    int64_t longest_ttl_ns;
    int64_t end_us; /* of the last lease, by the server's clock */
    char server[SERVER_ID_MAX];
};

/* Everything but `name`, `locks` and `stores` may be changed by the test at any time. */
struct fake_server {
    char name[64];
    char id[SERVER_ID_MAX];   /* change it: another server, or a restart */
    int64_t clock_offset_us;  /* of its clock against CLOCK_REALTIME */
    int64_t request_delay_ns; /* before a request is carried out */
    int64_t reply_delay_ns;   /* after that */
    enum fake_fault fault;    /* what befalls requests */
    unsigned fault_count;     /* so many of them; UINT_MAX: all */
    bool frozen;              /* requests wait until it is false again */
    uint32_t warnings;        /* enum warning, in every reply */
    unsigned requests;        /* how many arrived */

    struct fake_lock *locks;
    size_t lock_count;
    struct fake_store *stores;
    struct fake_server *next;
};

extern const struct store_ops fake_store_ops;

struct fake_server *fake_server_create(const char *name);
/* All stores must be closed; NULL is allowed. */
void fake_server_destroy(struct fake_server *server);
/* NULL when there is none. */
struct fake_server *fake_server_find(const char *name);

/* Forgets locks and records, as an administrator's FLUSHALL does. */
void fake_server_forget(struct fake_server *server);
/* The lock of "NS/NAME", made when missing; good until the next one is made. */
struct fake_lock *fake_server_lock(struct fake_server *server, const char *namespace_,
                                   const char *election);
/* Tells all stores that an election's lock is gone, as from a connection that was cut. */
void fake_server_lose(struct fake_server *server, const char *namespace_, const char *election);

/* What the server does with one request that arrived: fills reply, and text of an UNSURE. */
void fake_server_answer(struct fake_server *server, enum store_event_type type,
                        const struct store_setup *client, const struct store_request *request,
                        struct store_event *event);

/* All stores of the server hear of it, later (fake.c). */
void fake_stores_notify(struct fake_server *server, const char *key, enum store_event_type type,
                        bool clean);

#endif
