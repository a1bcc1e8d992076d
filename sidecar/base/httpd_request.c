#include "base/httpd_inside.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES 2048 /* of the newest reply; a long one is not worth its memory */

static struct httpd_connection *connection_of(struct MHD_Connection *handle) {
    return MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* The request line has come. What is returned is *con_cls of the other two. */
void *httpd_request_begin(void *cls, const char *uri, struct MHD_Connection *connection) {
    struct httpd *httpd = cls;
    httpd_connection_move(httpd, connection_of(connection), &httpd->busy);

    struct httpd_exchange *exchange = &connection_of(connection)->one;
    memset(exchange, 0, offsetof(struct httpd_exchange, target));
    exchange->handle = connection;
    connection_of(connection)->exchange = exchange;
    size_t length = uri != NULL ? strnlen(uri, HTTPD_TARGET_MAX + 1) : 0;
    if (length > HTTPD_TARGET_MAX) {
        exchange->request.too_long = true;
        length = HTTPD_TARGET_MAX;
    }
    memcpy(exchange->target, uri != NULL ? uri : "", length);
    exchange->target[length] = '\0';
    char *query = strchr(exchange->target, '?');
    if (query != NULL) {
        *query++ = '\0';
    }
    exchange->request.path = exchange->target;
    exchange->request.query = query;
    return exchange;
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct httpd_request *request = cls;
    (void)kind;
    if (strcasecmp(name, "Host") == 0) {
        request->host_count++;
        if (request->host == NULL) {
            request->host = value != NULL ? value : "";
        }
    }
    return MHD_YES;
}

static enum httpd_method parse_method(const char *method) {
    if (strcmp(method, "GET") == 0) {
        return HTTPD_GET;
    }
    if (strcmp(method, "HEAD") == 0) {
        return HTTPD_HEAD;
    }
    return strcmp(method, "OPTIONS") == 0 ? HTTPD_OPTIONS : HTTPD_OTHER;
}

/* NULL when the library has no memory left for this connection. The body is the response's. */
static struct MHD_Response *make_response(const struct httpd_reply *reply, bool closes) {
    struct MHD_Response *response =
        reply->body != NULL
            ? MHD_create_response_from_buffer(reply->length, reply->body, MHD_RESPMEM_MUST_FREE)
            : MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        free(reply->body);
        return NULL;
    }
    bool added = true;
    if (reply->content_type != NULL) {
        added = MHD_add_response_header(response, "Content-Type", reply->content_type) == MHD_YES;
    }
    for (size_t i = 0; i < reply->header_count && added; i++) {
        added = MHD_add_response_header(response, reply->headers[i].name,
                                        reply->headers[i].value) == MHD_YES;
    }
    if (added && closes) {
        added = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    }
    if (!added) {
        /* Half a reply would be a wrong one. */
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Byte for byte; the status is no part of a response. */
static bool same_reply(const struct httpd_reply *a, const struct httpd_reply *b) {
    bool same = a->length == b->length && (a->body == NULL) == (b->body == NULL) &&
                (a->body == NULL || memcmp(a->body, b->body, a->length) == 0) &&
                same_text(a->content_type, b->content_type) && a->header_count == b->header_count;
    for (size_t i = 0; i < a->header_count && same; i++) {
        same = strcmp(a->headers[i].name, b->headers[i].name) == 0 &&
               strcmp(a->headers[i].value, b->headers[i].value) == 0;
    }
    return same;
}

void httpd_last_drop(struct httpd *httpd) {
    if (httpd->last.response != NULL) {
        MHD_destroy_response(httpd->last.response);
        httpd->last.response = NULL;
    }
}

/* The response for this reply, the one before where that says the same: making one takes longer
 * than all the rest. NULL when the library has no memory left. */
static struct MHD_Response *response_for(struct httpd *httpd, struct httpd_reply *reply) {
    struct httpd_last *last = &httpd->last;
    bool closes = httpd->setup.idle_ms == 0 || httpd->closing;
    if (last->response != NULL && last->closes == closes && same_reply(&last->reply, reply)) {
        free(reply->body);
        return last->response;
    }
    httpd_last_drop(httpd);
    *last = (struct httpd_last){
        .response = make_response(reply, closes), .reply = *reply, .closes = closes};
    return last->response;
}

static enum MHD_Result answer(struct httpd *httpd, struct MHD_Connection *connection,
                              struct httpd_request *request) {
    struct httpd_reply reply = {.status = 0};
    if (connection_of(connection)->list == NULL) {
        return MHD_NO; /* cut off: nobody is there */
    }
    request->host = NULL;
    request->host_count = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, see_header, request);
    httpd->setup.handle(httpd->setup.context, request, &reply);
    if (reply.hold != NULL) {
        httpd_hold_request(httpd, connection_of(connection), reply.hold);
        return MHD_YES;
    }
    struct MHD_Response *response = response_for(httpd, &reply);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_queue_response(connection, reply.status, response);
    if (reply.length > KEPT_BYTES) {
        httpd_last_drop(httpd);
    }
    return result;
}

/* Called once with the headers, then for each piece of a body, then once more. MHD_NO closes the
 * connection without a reply. */
enum MHD_Result httpd_request_handle(void *cls, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version,
                                     const char *upload_data, size_t *upload_data_size,
                                     void **con_cls) {
    (void)url; /* the copy made at the beginning counts */
    (void)upload_data;
    struct httpd_exchange *exchange = *con_cls;
    struct httpd_request *request = &exchange->request;
    if (!exchange->seen) {
        exchange->seen = true;
        connection_of(connection)->answering = true;
        request->method = parse_method(method);
        request->needs_host = strcmp(version, "HTTP/1.0") != 0;
        /* Other methods get their refusal before their body. */
        return request->method == HTTPD_OTHER ? answer(cls, connection, request) : MHD_YES;
    }
    if (*upload_data_size > 0) {
        exchange->body_bytes += *upload_data_size;
        *upload_data_size = 0;
        return exchange->body_bytes <= HTTPD_BODY_MAX ? MHD_YES : MHD_NO;
    }
    return answer(cls, connection, request);
}

void httpd_request_end(void *cls, struct MHD_Connection *connection, void **con_cls,
                       enum MHD_RequestTerminationCode code) {
    struct httpd *httpd = cls;
    struct httpd_exchange *exchange = *con_cls;
    (void)code;
    if (exchange != NULL && exchange->hold != NULL) {
        exchange->hold->ended(exchange->hold);
    }
    *con_cls = NULL;
    connection_of(connection)->exchange = NULL;
    connection_of(connection)->answering = false;
    httpd_connection_move(httpd, connection_of(connection), &httpd->idle);
}

void httpd_reply_header(struct httpd_reply *reply, const char *name, const char *format, ...) {
    struct httpd_header *header = &reply->headers[reply->header_count++];
    header->name = name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(header->value, sizeof header->value, format, arguments);
    va_end(arguments);
}

void httpd_reply_text(struct httpd_reply *reply, const char *content_type, const char *text) {
    free(reply->body);
    reply->content_type = content_type;
    reply->body = memory_text(text);
    reply->length = strlen(text);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool httpd_decode(const char *segment, size_t length, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)segment[i];
        if (c == '%') {
            int high = i + 2 < length ? hex_digit(segment[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(segment[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (unsigned char)(high << 4 | low);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || used + 1 >= size) {
            return false;
        }
        text[used++] = (char)c;
    }
    text[used] = '\0';
    return true;
}
