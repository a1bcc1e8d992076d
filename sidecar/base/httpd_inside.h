#ifndef GAVEL_BASE_HTTPD_INSIDE_H
#define GAVEL_BASE_HTTPD_INSIDE_H

/* Shared by httpd.c, httpd_connections.c and httpd_request.c, nobody else's. */

#include "base/httpd.h"
#include "base/listen.h"

#include <microhttpd.h>

struct httpd_list {
    struct httpd_connection *first, *last; /* the oldest first */
};

/* From the request line to the end of the reply. */
struct httpd_exchange {
    struct MHD_Connection *handle;
    struct httpd_request request;
    struct httpd_hold *hold;           /* not NULL: has been held, and not ended */
    size_t body_bytes;                 /* thrown away so far */
    bool seen;                         /* the library has called the handler once */
    char target[HTTPD_TARGET_MAX + 1]; /* last: the rest is cleared for each request */
};

struct httpd_connection {
    struct httpd_connection *next, *previous;
    struct httpd_list *list;         /* NULL: cut off, waits to be closed */
    uint64_t since_ms;               /* on the loop's clock: when it joined its list */
    struct httpd_exchange *exchange; /* the request under way: `one`; NULL: none is */
    struct httpd_exchange one;       /* a connection has one at a time */
    int fd;
    bool answering; /* from the end of a request's headers to the end of its reply */
};

/* The newest reply. Most are asked for again before anything in them changes. */
struct httpd_last {
    struct MHD_Response *response; /* NULL: none; it owns the body */
    struct httpd_reply reply;      /* what it was made of */
    bool closes;                   /* with "Connection: close" */
};

struct httpd {
    struct httpd_setup setup;
    struct MHD_Daemon *daemon;
    struct httpd_last last;
    struct listen_set listeners;
    struct httpd_list busy;    /* a request is awaited for the first time, or under way */
    struct httpd_list idle;    /* has had its answer */
    unsigned connection_count; /* in both lists */
    unsigned connection_limit;
    struct httpd_list held; /* suspended: the library does not look at them */
    unsigned held_count;
    unsigned hold_limit;

    uv_poll_t accept_polls[LISTEN_SOCKETS_MAX];
    size_t accept_poll_count;
    uv_poll_t poll; /* on the library's epoll descriptor */
    uv_timer_t timer;
    unsigned open_handles;
    uint64_t accept_again_ms; /* 0: accepting */
    uint64_t sweep_ms;        /* the next look for peers that have left */
    bool running;             /* inside the library */
    bool soon;                /* it has to run again, whatever it says itself */
    bool in_timer;            /* drive() runs from its timer */

    bool closing;
    uint64_t close_by_ms;
    void (*closed)(void *context);
    void *closed_context;
};

void httpd_connection_add(struct httpd *httpd, struct httpd_connection *connection,
                          struct httpd_list *list);
void httpd_connection_remove(struct httpd *httpd, struct httpd_connection *connection);
/* A request begins or has ended on this connection; nothing when it is cut off already. */
void httpd_connection_move(struct httpd *httpd, struct httpd_connection *connection,
                           struct httpd_list *list);

/* Cutting off leaves it to the library to close the descriptor and to tell of it. */
void httpd_cut_off_waiting(struct httpd *httpd); /* all that have no reply under way */
/* Makes room for another. */
void httpd_cut_off_one(struct httpd *httpd);
/* Suspends a request, for the handler asked for it. */
void httpd_hold_request(struct httpd *httpd, struct httpd_connection *connection,
                        struct httpd_hold *hold);
void httpd_resume_all(struct httpd *httpd);
/* The library runs in the loop's next turn (httpd.c). */
void httpd_run_soon(struct httpd *httpd);
/* What has been in the list for too long, and idle or held ones whose peer has left. Both return
 * when to look again, on the loop's clock, or `next_ms`, whichever is earlier. */
uint64_t httpd_cut_off_late(struct httpd *httpd, struct httpd_list *list, unsigned limit_ms,
                            uint64_t next_ms);
uint64_t httpd_cut_off_gone(struct httpd *httpd, uint64_t next_ms);

/* Gives up the newest reply. */
void httpd_last_drop(struct httpd *httpd);

/* Callbacks of the library; cls is the struct httpd. */
void *httpd_request_begin(void *cls, const char *uri, struct MHD_Connection *connection);
enum MHD_Result httpd_request_handle(void *cls, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version,
                                     const char *upload_data, size_t *upload_data_size,
                                     void **con_cls);
void httpd_request_end(void *cls, struct MHD_Connection *connection, void **con_cls,
                       enum MHD_RequestTerminationCode code);

#endif
