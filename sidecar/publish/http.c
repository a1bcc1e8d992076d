#include "publish/http.h"

#include "base/httpd.h"
#include "base/log.h"
#include "base/memory.h"
#include "publish/http_answer.h"
#include "publish/http_path.h"
#include "publish/http_query.h"
#include "publish/waiters.h"

#include <stdlib.h>
#include <string.h>

#define CONNECTION_LIMIT 256
#define WAITERS_LIMIT 1024
#define REQUEST_MS 10000
/* Longer than clients like to keep a connection, so that it is they who close it: a request that
 * crosses a close would be an error, and every error means not leader. */
#define IDLE_MS 90000

struct http_api {
    struct board *board;
    struct counters *counters;
    struct httpd *httpd;
    struct waiters waiters;
    bool loopback;
    void (*closed)(void *context);
    void *context;
};

/* A page that a browser got from a name which now points at 127.0.0.1 still sends that name. */
static bool refuse_host(const struct http_api *api, const struct httpd_request *request,
                        struct httpd_reply *reply) {
    if (request->host_count > 1) {
        http_problem(reply, 400, "more than one Host header");
        return true;
    }
    if (request->host == NULL && request->needs_host) {
        http_problem(reply, 400, "a request needs a Host header");
        return true;
    }
    if (api->loopback && request->host != NULL && !httpd_host_is_local(request->host)) {
        http_problem(reply, 421,
                     "this address answers only to the host names localhost, 127.0.0.1 and [::1]");
        return true;
    }
    return false;
}

/* What can be said without looking at any election. */
static bool refuse(const struct http_api *api, const struct httpd_request *request,
                   const struct http_path *path, struct http_query *query,
                   struct httpd_reply *reply) {
    const char *problem = NULL;
    if (request->too_long) {
        http_problem(reply, 414, "the request's path and query are over 1024 bytes");
    } else if (refuse_host(api, request, reply)) {
        return true;
    } else if (path->route == ROUTE_BAD) {
        http_problem(reply, 400, "the request's path is not a path, or is badly percent-encoded");
    } else if (path->route == ROUTE_UNKNOWN) {
        http_problem(reply, 404,
                     "there is: /v1/elections, /v1/elections/NAME, /v1/elections/NAME/leader, "
                     "/v1/leader, /");
    } else if (request->method == HTTPD_OTHER) {
        http_problem(reply, 405, "nothing can be changed here: use GET, HEAD or OPTIONS");
        httpd_reply_header(reply, "Allow", HTTP_ALLOW);
    } else if (path->route != ROUTE_ELECTION && request->query != NULL &&
               request->query[0] != '\0') {
        http_problem(reply, 400, "bad query: this path takes no query parameters");
    } else if (path->route == ROUTE_ELECTION &&
               !http_query_parse(query, request->query, &problem)) {
        http_problem(reply, 400, problem);
    } else {
        return false;
    }
    return true;
}

/* A change that the asker does not know of is answered at once. */
static bool wants_to_wait(const struct httpd_request *request, const struct http_query *query,
                          const struct board_entry *entry) {
    return request->hold == NULL && query->has_index && query->index == entry->view.index &&
           query->wait_ns > 0;
}

static void answer_election(struct http_api *api, const struct httpd_request *request,
                            const struct http_query *query, struct board_entry *entry,
                            struct httpd_reply *reply) {
    bool wait = wants_to_wait(request, query, entry);
    if (wait && waiters_add(&api->waiters, entry, query->wait_ns, reply)) {
        return;
    }
    http_answer_election(reply, api->board, entry, false);
    if (wait) {
        httpd_reply_header(reply, "Retry-After", "1"); /* there is no room to wait */
    }
}

static void answer_one(struct http_api *api, const struct httpd_request *request,
                       const struct http_path *path, const struct http_query *query,
                       struct httpd_reply *reply) {
    enum board_find_error why = BOARD_FOUND;
    struct board_entry *entry = board_find(api->board, path->name, strlen(path->name), &why);
    if (why == BOARD_NAME_NEEDED) {
        http_problem(reply, 400,
                     "there are several elections here: ask for /v1/elections/NAME/leader");
    } else if (why == BOARD_UNKNOWN_ELECTION) {
        http_problem(reply, 404, "there is no such election here: /v1/elections lists them");
    } else if (path->route == ROUTE_ROOT) {
        http_answer_name(reply, api->board, entry);
    } else if (path->route == ROUTE_LEADER) {
        http_answer_election(reply, api->board, entry, true);
    } else {
        answer_election(api, request, query, entry, reply);
    }
}

static void answer(struct http_api *api, const struct httpd_request *request,
                   struct httpd_reply *reply) {
    struct http_path path = {.route = ROUTE_UNKNOWN};
    struct http_query query = {.has_index = false};
    if (!request->too_long) {
        http_path_parse(&path, request->path);
    }
    if (refuse(api, request, &path, &query, reply)) {
        return;
    }
    if (request->method == HTTPD_OPTIONS) {
        httpd_reply_header(reply, "Allow", HTTP_ALLOW);
        if (path.route != ROUTE_LEADER) {
            reply->status = 204;
            return;
        }
    }
    if (path.route == ROUTE_LIST) {
        http_answer_list(reply, api->board);
    } else if (path.route == ROUTE_SERVER) {
        http_problem(reply, 400, "\"*\" is for OPTIONS only");
    } else {
        answer_one(api, request, &path, &query, reply);
    }
}

static void handle(void *context, const struct httpd_request *request, struct httpd_reply *reply) {
    struct http_api *api = context;
    httpd_reply_header(reply, "Cache-Control", "no-store");
    answer(api, request, reply);
    if (reply->hold != NULL) {
        return; /* it is counted when it is answered */
    }
    api->counters->api_requests[LISTENER_HTTP][counter_code_of(reply->status)]++;
}

struct http_api *http_create(const struct http_setup *setup, struct error *error) {
    struct http_api *api = memory_zeroed(1, sizeof *api);
    api->board = setup->board;
    api->counters = setup->counters;
    const struct httpd_setup httpd_setup = {
        .loop = setup->loop,
        .listener = "http",
        .option = "--http",
        .host = setup->address->host,
        .port = setup->address->port,
        .connection_limit = CONNECTION_LIMIT,
        .hold_limit = WAITERS_LIMIT,
        .request_ms = REQUEST_MS,
        .idle_ms = IDLE_MS,
        .handle = handle,
        .context = api,
    };
    api->httpd = httpd_create(&httpd_setup, error);
    if (api->httpd == NULL) {
        free(api);
        return NULL;
    }
    waiters_init(&api->waiters, setup->loop, setup->board, setup->counters);
    api->waiters.httpd = api->httpd;
    api->loopback = httpd_is_loopback(api->httpd);
    if (!api->loopback) {
        setup->board->process_warnings |= WARNING_LISTENER_EXPOSED;
        log_event(LOG_WARN, "listener-exposed", LOG_TEXT("listener", "http"),
                  LOG_TEXT("address", setup->address->host[0] != '\0' ? setup->address->host : "*"),
                  LOG_NUMBER("port", httpd_port(api->httpd)),
                  LOG_TEXT("detail", "anybody who reaches this address can read who leads, and "
                                     "keep handovers waiting by asking: localhost is enough for "
                                     "an application in the same pod"));
    }
    return api;
}

uint16_t http_port(const struct http_api *api) {
    return httpd_port(api->httpd);
}

static void on_waiters_closed(uv_handle_t *handle) {
    struct waiters *waiters = handle->data;
    struct http_api *api =
        (struct http_api *)((char *)waiters - offsetof(struct http_api, waiters));
    void (*closed)(void *context) = api->closed;
    void *closed_context = api->context;
    free(api);
    closed(closed_context);
}

static void on_httpd_closed(void *context) {
    struct http_api *api = context;
    waiters_finish(&api->waiters, on_waiters_closed);
}

void http_close(struct http_api *api, void (*closed)(void *context), void *context) {
    api->closed = closed;
    api->context = context;
    httpd_close(api->httpd, on_httpd_closed, api);
}
