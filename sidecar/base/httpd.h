#ifndef GAVEL_BASE_HTTPD_H
#define GAVEL_BASE_HTTPD_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/*
 * libmicrohttpd on the loop: a small HTTP server for questions that are answered at once, or held
 * until there is something to say.
 *
 * gavel accepts connections itself and hands them to the library, so that a full house never shuts
 * anybody out: over the limit the connection that has been idle for longest (else the one that has
 * taken longest over its request) is closed in favour of the new one, and running out of
 * descriptors is a pause, not a busy loop. A request has `request_ms` from its beginning to the
 * last byte of its reply. A request that is held takes no place of the others and none of that
 * time; one whose client has left, or has closed its side of the connection, is ended or answered
 * within a second or so. Loop thread only.
 */
struct httpd;
struct httpd_exchange;

#define HTTPD_TARGET_MAX 1024              /* bytes in a request's path and query */
#define HTTPD_BODY_MAX ((size_t)64 * 1024) /* bytes of a body that are read and thrown away */
#define HTTPD_HEADERS_MAX 4

enum httpd_method { HTTPD_GET, HTTPD_HEAD, HTTPD_OPTIONS, HTTPD_OTHER };

/* A request that waits for its answer: embed it, it has to stay until it has ended. */
struct httpd_hold {
    /* Once: it was answered, or its client has left. */
    void (*ended)(struct httpd_hold *hold);
    struct httpd_exchange *exchange; /* the server's own */
};

/* Valid during the call only. */
struct httpd_request {
    enum httpd_method method;
    const char *path;  /* as it came, percent-encoded, without the query */
    const char *query; /* what follows the "?"; NULL: there is none */
    const char *host;  /* the Host header; NULL: there is none */
    unsigned host_count;
    bool needs_host;         /* HTTP/1.1 or later */
    bool too_long;           /* over HTTPD_TARGET_MAX: path and query are cut */
    struct httpd_hold *hold; /* it was held, and has to be answered now; else NULL */
};

/* Zeroed before the call. A HEAD is answered like a GET, its body is left out on the way. */
struct httpd_reply {
    struct httpd_hold *hold; /* not NULL: no reply yet, see httpd_can_hold() */
    unsigned status;
    const char *content_type; /* static; NULL: none */
    char *body;               /* heap, the server frees it; NULL: empty */
    size_t length;
    size_t header_count;
    struct httpd_header {
        const char *name; /* static */
        char value[64];
    } headers[HTTPD_HEADERS_MAX];
};

/* Adds a header; the value must fit. */
void httpd_reply_header(struct httpd_reply *reply, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the body to a copy of `text`. */
void httpd_reply_text(struct httpd_reply *reply, const char *content_type, const char *text);

/* Decodes one percent-encoded path segment of `length` bytes. False when an escape is broken, when
 * a control character or NUL comes out, or when `size` is too small. Re-entrant. */
bool httpd_decode(const char *segment, size_t length, char *text, size_t size);

struct httpd_setup {
    uv_loop_t *loop;
    const char *listener; /* its name in logs; static */
    const char *option;   /* its name in errors */
    const char *host;     /* as in listen.h */
    uint16_t port;
    unsigned connection_limit; /* less where the process may open few files */
    unsigned hold_limit; /* requests held at a time, beyond those; less where the process may open
                            few files */
    unsigned request_ms;
    unsigned idle_ms; /* between two requests; 0: one request a connection */
    /* Fills in the reply, or gives it a hold; called again with that hold in the request. Must not
     * call back into this server but for httpd_close() and httpd_can_hold(). */
    void (*handle)(void *context, const struct httpd_request *request, struct httpd_reply *reply);
    void *context;
};

/* Listens at once and logs event "listening" with listener, address and port for each socket.
 * NULL: error is set. */
struct httpd *httpd_create(const struct httpd_setup *setup, struct error *error);

/* Nobody but this host can reach it. */
bool httpd_is_loopback(const struct httpd *httpd);
uint16_t httpd_port(const struct httpd *httpd);

/* Whether one more request may be held. */
bool httpd_can_hold(const struct httpd *httpd);

/* Has the handler called again for a held request, soon; once for each (which may happen without
 * this as well, when its client sends no more). Not from the handler. */
void httpd_resume(struct httpd *httpd, struct httpd_hold *hold);

/* Stops accepting, resumes what is held, closes idle connections, lets replies under way end for a
 * moment, frees. `closed` is called once, later. */
void httpd_close(struct httpd *httpd, void (*closed)(void *context), void *context);

/* A Host header that only a client on this machine has a reason to send: localhost, 127.x.x.x or
 * ::1 in brackets, with or without a port. */
bool httpd_host_is_local(const char *host);

#endif
