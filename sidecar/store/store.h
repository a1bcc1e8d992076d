#ifndef GAVEL_STORE_STORE_H
#define GAVEL_STORE_STORE_H

#include "base/error.h"
#include "election/election.h"

#include <stddef.h>
#include <uv.h>

/*
 * The contract of a store: where the locks of all elections of this process live.
 *
 * - One thread, the loop's. Nothing here blocks it.
 * - acquire, renew and release each give exactly one event of the same kind, within the request's
 *   timeout (counted from the call, name resolution and connecting included) and a little. They
 *   never call back before they return. At most one is under way for each election.
 * - Every doubt (an error, a timeout, a reply of another shape) is OUTCOME_UNSURE with a reason
 *   and a text for people. Only the store's own word is OUTCOME_NO.
 * - `reply.sent` is read before the first byte of the request could leave.
 * - WAKE and LOST events may come at any time between open and close. A WAKE is a hint.
 * - A request whose time ran out may still be carried out by the server later. Requests name the
 *   grant by its nonce, and only the nonce is compared.
 * - close may be called at any moment, from a callback of the store too. After it returns no event
 *   comes; `closed` is called once, later, when all memory and handles are gone. Closing does not
 *   release any lock by a request, but a store whose lock dies with its connection frees it.
 */
struct store;

/* Counters that the process shows; the store writes them. Caller's memory, zeroed at start. */
struct store_status {
    bool up;              /* the last request was answered */
    uint64_t reconnects;  /* connections made after the first */
    uint64_t clock_steps; /* steps of the store's clock against ours */
    char version[48];     /* of the server, "redis 7.0.15"; empty: none or unknown */
    char nodes[2048];     /* of several servers, what each of them does, a line each; else empty */
    char problem[200];    /* the last trouble, for people; empty: none. Never a secret */
};

/* User and password; may change at run time (SIGHUP), so a store reads them at each connect. */
struct store_secrets {
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none */
    unsigned generation;  /* another number when one of them is another */
    /* Reads both again from where they came from. A store calls it when the server has refused
     * them, and before it tries again. NULL: they do not change. */
    void (*refresh)(void *context);
    void *context;
};

enum store_tls_file {
    STORE_TLS_CA,          /* trusted instead of the system's */
    STORE_TLS_CERTIFICATE, /* shown to the server, with its chain */
    STORE_TLS_KEY,         /* of that certificate, not encrypted */
    STORE_TLS_FILES
};

/* What connections with TLS need; paths of PEM files, NULL: not given. */
struct store_tls {
    const char *paths[STORE_TLS_FILES];
};

/* What reading them showed. */
struct store_tls_finding {
    enum store_tls_file file; /* the one that is wrong */
    struct error error;       /* in words that go on after its path; never a part of the content */
    bool key_exposed;         /* not wrong, but others than its owner may read the key */
};

/* An explicit key (--pg-key) instead of the name's hash; for one election. */
struct store_pg_key {
    enum { STORE_PG_KEY_HASH, STORE_PG_KEY_BIGINT, STORE_PG_KEY_INTS } form;
    int64_t whole;
    int32_t first, second;
};

/* The --pg-* options. Zeroed: the defaults. */
struct store_postgres {
    const char *schema; /* NULL: public */
    struct store_pg_key key;
    const char *sequence; /* tokens are above its next number too; NULL: none */
    bool transaction;     /* the lock is a transaction's, for transaction poolers */
    bool session_pooler;  /* a pooler that gives each client a session is accepted */
    bool synchronous;     /* probes write, and count only with a synchronous standby */
};

enum store_event_type {
    STORE_ACQUIRED,
    STORE_RENEWED,
    STORE_RELEASED,
    STORE_WAKE, /* given back by its holder; `clean` says whether with the clean mark */
    STORE_LOST, /* the store knows that our lock is gone, without being asked */
};

struct store_event {
    enum store_event_type type;
    size_t election; /* index into the names given at open */
    struct store_reply reply;
    bool clean;
    unsigned char nonce[NONCE_BYTES]; /* WAKE, of Redis: of the grant that ended; zeros: not told */
    /* Of a Redlock node: how many nodes its record's list differs by; 2: more; 3: any number, and
     * it has run out. */
    unsigned lists_apart;
    char text[160]; /* UNSURE, or a strange NO: what happened, for people. Never a secret */
};

struct store_request {
    size_t election;
    unsigned char nonce[NONCE_BYTES];
    uint64_t seen_token; /* acquire, renew with raise_token: tokens must be above it */
    int64_t wait_ns;     /* acquire, renew: W. Unless the last lease ended cleanly, the recorded end
                          * of a new grant, or of a record that a renewal has to write anew, is not
                          * before now + W: an older lease may be trusted for so long */
    bool take;           /* acquire: false only looks */
    bool raise_token;    /* renew: mint the token anew, by the one rule */
    bool clean;          /* release: write the clean mark, if the record still has `token` */
    uint64_t token;      /* release: the grant's. Of a Redlock node, acquire: of the lease that is
                          * made anew; renew: the least that it may have. 0: none */
    /* release: whose yes the grant had last (reply.server). A server with another identity writes
     * no mark: what it holds may be older than what came in between. */
    char server[SERVER_ID_MAX];
    int64_t timeout_ns;
};

/* What a store is opened with. Strings and arrays outlive the store. */
struct store_setup {
    uv_loop_t *loop;
    const char *url;
    const char *namespace_;
    const char *identity; /* shown as holder, never compared */
    const char *const *elections;
    size_t election_count;
    int64_t ttl_ns;
    int64_t margin_ns;
    uint64_t token_floor;
    const char *node_list;  /* of a Redlock node: all of them, kept in its record; NULL: alone */
    unsigned wait_replicas; /* Redis: how many of them have to acknowledge a grant or renewal */
    const struct store_secrets *secrets;
    struct store_tls tls;
    const struct store_postgres *postgres; /* NULL: the defaults */
    struct store_status *status;
    void (*on_event)(void *context, const struct store_event *event);
    void *context;
};

struct store_ops {
    const char *kind; /* "local": the name in JSON */
    int64_t poll_ns;  /* the longest sleep of a follower; 0: ttl/3 */
    bool batches;     /* requests that come together are one question to the server */
    /* True when the URL is this store's, right or wrong. */
    bool (*claims)(const char *url);
    /* Checks a URL without touching the outside. False: error says what is wrong and what would
     * be right, without any secret in it. */
    bool (*check)(const char *url, struct error *error);
    /* Whether a right URL asks for TLS with the files of struct store_tls; NULL: none does. */
    bool (*uses_tls)(const char *url);
    /* Reads the files, only to see whether they are good. NULL where uses_tls is. */
    bool (*check_tls)(const struct store_tls *tls, struct store_tls_finding *finding);
    /* Reads them again, for connections to come. False: none is taken, the old ones stay. NULL
     * where uses_tls is. */
    bool (*reload_tls)(struct store *store, struct store_tls_finding *finding);
    /* Makes the store; no connection is made before the first request. NULL: error is set. */
    struct store *(*open)(const struct store_setup *setup, struct error *error);
    void (*acquire)(struct store *store, const struct store_request *request);
    void (*renew)(struct store *store, const struct store_request *request);
    void (*release)(struct store *store, const struct store_request *request);
    /* Where this election's lock lives, for people to compare: "RUN_ID/0/gavel:{default/a}".
     * Empty while not known. */
    void (*lock_space)(const struct store *store, size_t election, char *text, size_t size);
    void (*close)(struct store *store, void (*closed)(void *context), void *context);
};

/* The first member of every store. */
struct store {
    const struct store_ops *ops;
};

/* The store that claims the URL; NULL with an error that lists what there is. */
const struct store_ops *store_for_url(const char *url, struct error *error);

#endif
