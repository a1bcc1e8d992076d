#include "base/http_probe.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_LINE_MAX 256 /* what is read of an answer, at most */
#define REQUEST_MAX (HTTP_TARGET_PATH_MAX + 160)

/* One request; freed by the close callback of its connection. */
struct attempt {
    struct http_probe *probe; /* NULL: nobody waits for it any more */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    bool v6;
    size_t length;
    char text[STATUS_LINE_MAX];
};

struct http_probe {
    struct http_target target;
    uv_loop_t *loop;
    uv_timer_t timer; /* the next request, or the end of the one under way */
    uint64_t every_ms, timeout_ms;
    uint64_t started_ms;
    struct attempt *attempt; /* NULL: none under way */
    void (*result)(void *context, bool well, const char *why);
    void *context;
    char request[REQUEST_MAX];
};

static void start(struct http_probe *probe, bool v6);
static void on_timer(uv_timer_t *timer);

static void on_attempt_closed(uv_handle_t *handle) {
    free(handle->data);
}

static void abandon(struct http_probe *probe) {
    struct attempt *attempt = probe->attempt;
    if (attempt != NULL) {
        probe->attempt = NULL;
        attempt->probe = NULL;
        uv_close((uv_handle_t *)&attempt->tcp, on_attempt_closed);
    }
}

static void finish(struct http_probe *probe, bool well, const char *why) {
    abandon(probe);
    uint64_t used_ms = uv_now(probe->loop) - probe->started_ms;
    uint64_t left_ms = used_ms < probe->every_ms ? probe->every_ms - used_ms : 0;
    uv_timer_start(&probe->timer, on_timer, left_ms, 0);
    probe->result(probe->context, well, why);
}

static void fail(struct attempt *attempt, int status) {
    struct http_probe *probe = attempt->probe;
    if (!attempt->v6 && probe->target.v6) {
        abandon(probe);
        start(probe, true);
    } else {
        finish(probe, false, uv_strerror(status));
    }
}

int http_status_parse(const char *text, size_t length) {
    static const char start_of[] = "HTTP/1.";
    for (size_t i = 0; i < length && i < 7; i++) {
        if (text[i] != start_of[i]) {
            return -1;
        }
    }
    if (length < 13) {
        return memchr(text, '\n', length) != NULL ? -1 : 0;
    }
    bool digits = true;
    for (size_t i = 9; i < 12; i++) {
        digits = digits && text[i] >= '0' && text[i] <= '9';
    }
    bool ends = text[12] == ' ' || text[12] == '\r' || text[12] == '\n';
    if (!digits || !ends || text[8] != ' ' || text[7] < '0' || text[7] > '9') {
        return -1;
    }
    return (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)suggested;
    struct attempt *attempt = handle->data;
    *buffer = uv_buf_init(attempt->text + attempt->length,
                          (unsigned)(sizeof attempt->text - attempt->length));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    (void)buffer;
    struct attempt *attempt = stream->data;
    struct http_probe *probe = attempt->probe;
    if (probe == NULL || count == 0) {
        return;
    }
    if (count < 0) {
        finish(probe, false, "the connection ended without a status line");
        return;
    }
    attempt->length += (size_t)count;
    int status = http_status_parse(attempt->text, attempt->length);
    if (status < 0) {
        finish(probe, false, "the answer is not HTTP/1");
    } else if (status > 0) {
        char why[32];
        (void)snprintf(why, sizeof why, "status %d", status);
        finish(probe, status >= 200 && status < 400, why);
    }
}

static void on_written(uv_write_t *request, int status) {
    struct attempt *attempt = request->data;
    if (attempt->probe != NULL && status < 0) {
        finish(attempt->probe, false, uv_strerror(status));
    }
}

static void on_connected(uv_connect_t *request, int status) {
    struct attempt *attempt = request->data;
    struct http_probe *probe = attempt->probe;
    if (probe == NULL) {
        return;
    }
    if (status < 0) {
        fail(attempt, status);
        return;
    }
    uv_buf_t buffer = uv_buf_init(probe->request, (unsigned)strlen(probe->request));
    uv_stream_t *stream = (uv_stream_t *)&attempt->tcp;
    int result = uv_write(&attempt->write, stream, &buffer, 1, on_written);
    if (result == 0) {
        result = uv_read_start(stream, on_alloc, on_read);
    }
    if (result < 0) {
        finish(probe, false, uv_strerror(result));
    }
}

static void start(struct http_probe *probe, bool v6) {
    struct attempt *attempt = memory_zeroed(1, sizeof *attempt);
    attempt->probe = probe;
    attempt->v6 = v6;
    attempt->connect.data = attempt->write.data = attempt->tcp.data = attempt;
    uv_tcp_init(probe->loop, &attempt->tcp);
    probe->attempt = attempt;
    struct sockaddr_in v4_address;
    struct sockaddr_in6 v6_address;
    const struct sockaddr *address;
    if (v6) {
        (void)uv_ip6_addr("::1", probe->target.port, &v6_address);
        address = (const struct sockaddr *)&v6_address;
    } else {
        (void)uv_ip4_addr(probe->target.v4_address, probe->target.port, &v4_address);
        address = (const struct sockaddr *)&v4_address;
    }
    int result = uv_tcp_connect(&attempt->connect, &attempt->tcp, address, on_connected);
    if (result < 0) {
        fail(attempt, result);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct http_probe *probe = timer->data;
    if (probe->attempt != NULL) {
        finish(probe, false, "no answer in time");
        return;
    }
    probe->started_ms = uv_now(probe->loop);
    uv_timer_start(&probe->timer, on_timer, probe->timeout_ms, 0);
    start(probe, !probe->target.v4);
}

struct http_probe *http_probe_create(uv_loop_t *loop, const struct http_target *target,
                                     uint64_t every_ms, uint64_t timeout_ms,
                                     void (*result)(void *context, bool well, const char *why),
                                     void *context) {
    struct http_probe *probe = memory_zeroed(1, sizeof *probe);
    probe->target = *target;
    probe->loop = loop;
    probe->every_ms = every_ms;
    probe->timeout_ms = timeout_ms;
    probe->result = result;
    probe->context = context;
    (void)snprintf(probe->request, sizeof probe->request,
                   "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: gavel\r\nConnection: close\r\n\r\n",
                   target->path, target->host);
    uv_timer_init(loop, &probe->timer);
    probe->timer.data = probe;
    uv_timer_start(&probe->timer, on_timer, 0, 0);
    return probe;
}

static void on_closed(uv_handle_t *handle) {
    free(handle->data);
}

void http_probe_close(struct http_probe *probe) {
    abandon(probe);
    uv_close((uv_handle_t *)&probe->timer, on_closed);
}

/* --- the URL -----------------------------------------------------------------------------------
 */

static bool read_port(const char **text, uint16_t *port) {
    unsigned value = 0;
    size_t length = 0;
    for (; **text >= '0' && **text <= '9' && length < 6; (*text)++, length++) {
        value = value * 10 + (unsigned)(**text - '0');
    }
    *port = (uint16_t)value;
    return length > 0 && value > 0 && value <= UINT16_MAX;
}

/* The host at the start of `text`; returns how long it is. */
static size_t read_host(const char *text, struct http_target *target) {
    size_t length = text[0] == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/?");
    char host[32];
    if (length >= sizeof host) {
        return 0;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    struct in_addr address;
    bool localhost = strcmp(host, "localhost") == 0;
    target->v6 = localhost || strcmp(host, "[::1]") == 0;
    target->v4 =
        localhost || (inet_pton(AF_INET, host, &address) == 1 && strncmp(host, "127.", 4) == 0);
    (void)snprintf(target->v4_address, sizeof target->v4_address, "%.15s",
                   localhost || !target->v4 ? "127.0.0.1" : host);
    return target->v4 || target->v6 ? length : 0;
}

bool http_target_parse(const char *url, struct http_target *target, struct error *error) {
    static const char scheme[] = "http://";
    memset(target, 0, sizeof *target);
    const char *text = url + sizeof scheme - 1;
    bool good = strncmp(url, scheme, sizeof scheme - 1) == 0;
    for (const char *at = url; good && *at != '\0'; at++) {
        good = *at > ' ' && *at < 0x7F && *at != '#';
    }
    size_t host = good ? read_host(text, target) : 0;
    const char *rest = text + host;
    target->port = 80;
    good = host > 0;
    if (good && *rest == ':') {
        rest++;
        good = read_port(&rest, &target->port);
    }
    good = good && (*rest == '\0' || *rest == '/') && strlen(rest) <= HTTP_TARGET_PATH_MAX;
    if (!good) {
        error_set(error,
                  "is not where an application on this host can be asked: write "
                  "http://localhost:8080/healthz, with localhost, 127.0.0.1 or [::1], and a "
                  "path of at most %d bytes",
                  HTTP_TARGET_PATH_MAX);
        return false;
    }
    (void)snprintf(target->host, sizeof target->host, "%.*s", (int)(rest - text), text);
    (void)snprintf(target->path, sizeof target->path, "%s", *rest == '\0' ? "/" : rest);
    return true;
}
