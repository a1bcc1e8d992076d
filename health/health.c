#include "health/health.h"

#include "base/httpd.h"
#include "base/memory.h"
#include "health/metrics.h"
#include "health/readiness.h"

#include <stdlib.h>
#include <string.h>

#define CONNECTION_LIMIT 64
#define REQUEST_MS 5000
#define PLAIN_TEXT "text/plain; charset=utf-8"
#define METRICS_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define LEADER "/leader"

struct health {
    struct health_setup setup;
    struct httpd *httpd;
    bool ready;
    void (*closed)(void *context);
    void *context;
};

static void answer_text(struct httpd_reply *reply, unsigned status, const char *text) {
    reply->status = status;
    httpd_reply_text(reply, PLAIN_TEXT, text);
}

static void answer_ready(const struct health *health, const char *query,
                         struct httpd_reply *reply) {
    bool verbose = query != NULL && strncmp(query, "verbose", 7) == 0 &&
                   strchr("=&", query[7]) != NULL; /* the end too */
    if (!verbose) {
        answer_text(reply, health->ready ? 200 : 503, health->ready ? "ok\n" : "not ready\n");
        return;
    }
    reply->status = health->ready ? 200 : 503;
    reply->content_type = PLAIN_TEXT;
    reply->body = readiness_text(health->ready, health->setup.board, health->setup.counters,
                                 health->setup.store, &reply->length);
}

/* A load balancer acts on this, so it is an answer like any other: the board notes it. */
static void answer_leader(const struct health *health, const char *name, size_t length,
                          struct httpd_reply *reply) {
    enum board_find_error why = BOARD_FOUND;
    struct board_entry *entry = board_find(health->setup.board, name, length, &why);
    if (why == BOARD_NAME_NEEDED) {
        answer_text(reply, 400, "there are several elections here: ask for /leader/NAME\n");
    } else if (why == BOARD_UNKNOWN_ELECTION) {
        answer_text(reply, 404, "there is no such election here\n");
    } else {
        reply->status = board_answer(health->setup.board, entry).leader ? 200 : 503;
    }
}

static void answer_leader_path(const struct health *health, const char *path,
                               struct httpd_reply *reply) {
    char name[ELECTION_NAME_MAX + 1] = "";
    const char *segment = path + strlen(LEADER);
    if (segment[0] == '/') {
        segment++;
        /* What cannot be decoded is no election's name. */
        if (segment[0] == '\0' || !httpd_decode(segment, strlen(segment), name, sizeof name)) {
            answer_text(reply, 404, "there is no such election here\n");
            return;
        }
    }
    answer_leader(health, name, strlen(name), reply);
}

static void answer_metrics(const struct health *health, struct httpd_reply *reply) {
    reply->status = 200;
    reply->content_type = METRICS_TEXT;
    reply->body = metrics_text(health->setup.board, health->setup.counters, health->setup.store,
                               &reply->length);
}

static bool is_leader_path(const char *path) {
    size_t length = strlen(LEADER);
    return strncmp(path, LEADER, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void answer(const struct health *health, const struct httpd_request *request,
                   struct httpd_reply *reply) {
    if (request->too_long) {
        answer_text(reply, 414, "the request's path and query are over 1024 bytes\n");
    } else if (httpd_is_loopback(health->httpd) && request->host != NULL &&
               !httpd_host_is_local(request->host)) {
        /* A page whose name now points at 127.0.0.1 still sends that name. */
        answer_text(reply, 421, "this address answers only to localhost, 127.0.0.1 and [::1]\n");
    } else if (request->method != HTTPD_GET && request->method != HTTPD_HEAD) {
        answer_text(reply, 405, "use GET or HEAD\n");
        httpd_reply_header(reply, "Allow", "GET, HEAD");
    } else if (strcmp(request->path, "/livez") == 0) {
        answer_text(reply, 200, "ok\n"); /* that it answers is the proof: the loop turns */
    } else if (strcmp(request->path, "/readyz") == 0) {
        answer_ready(health, request->query, reply);
    } else if (strcmp(request->path, "/metrics") == 0) {
        answer_metrics(health, reply);
    } else if (is_leader_path(request->path)) {
        answer_leader_path(health, request->path, reply);
    } else {
        answer_text(reply, 404, "there is: /livez, /readyz, /leader, /leader/NAME, /metrics\n");
    }
}

static void handle(void *context, const struct httpd_request *request, struct httpd_reply *reply) {
    struct health *health = context;
    httpd_reply_header(reply, "Cache-Control", "no-store");
    answer(health, request, reply);
    health->setup.own_counters->api_requests[LISTENER_HEALTH][counter_code_of(reply->status)]++;
}

struct health *health_create(const struct health_setup *setup, struct error *error) {
    struct health *health = memory_zeroed(1, sizeof *health);
    health->setup = *setup;
    const struct httpd_setup httpd_setup = {
        .loop = setup->loop,
        .listener = "health",
        .option = "--health",
        .host = setup->address->host,
        .port = setup->address->port,
        .connection_limit = CONNECTION_LIMIT,
        .request_ms = REQUEST_MS,
        .handle = handle,
        .context = health,
    };
    health->httpd = httpd_create(&httpd_setup, error);
    if (health->httpd == NULL) {
        free(health);
        return NULL;
    }
    return health;
}

uint16_t health_port(const struct health *health) {
    return httpd_port(health->httpd);
}

void health_set_ready(struct health *health, bool ready) {
    health->ready = ready;
}

static void on_closed(void *context) {
    struct health *health = context;
    void (*closed)(void *context) = health->closed;
    void *closed_context = health->context;
    free(health);
    closed(closed_context);
}

void health_close(struct health *health, void (*closed)(void *context), void *context) {
    health->closed = closed;
    health->context = context;
    httpd_close(health->httpd, on_closed, health);
}
