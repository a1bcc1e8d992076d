#include "publish/http_answer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_body(struct httpd_reply *reply, const char *content_type, char *body) {
    reply->content_type = content_type;
    reply->body = body;
    reply->length = strlen(body);
}

/* JSON text on one line; takes the object. */
static char *dump(json_t *object) {
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    if (text == NULL) {
        abort(); /* out of memory */
    }
    json_decref(object);
    return text;
}

void http_answer_election(struct httpd_reply *reply, struct board *board, struct board_entry *entry,
                          bool by_role) {
    struct answer answer = board_answer(board, entry);
    reply->status = answer.leader || !by_role ? 200 : 503;
    set_body(reply, "application/json", board_json(board, entry, &answer));
    if (answer.leader) {
        httpd_reply_header(reply, "Fencing-Token", "%" PRIu64, answer.token);
        httpd_reply_header(reply, "Lease-Valid-Ms", "%" PRId64, answer.valid_ns / NS_PER_MS);
    }
}

void http_answer_list(struct httpd_reply *reply, struct board *board) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        abort(); /* out of memory */
    }
    fputs("{\"elections\":[", out);
    for (size_t i = 0; i < board->count; i++) {
        struct answer answer = board_answer(board, &board->entries[i]);
        char *one = board_json(board, &board->entries[i], &answer);
        fprintf(out, "%s%s", i > 0 ? "," : "", one);
        free(one);
    }
    fputs("]}", out);
    if (fclose(out) != 0) {
        abort(); /* out of memory */
    }
    reply->status = 200;
    set_body(reply, "application/json", text);
}

void http_answer_name(struct httpd_reply *reply, struct board *board, struct board_entry *entry) {
    struct answer answer = board_answer(board, entry);
    json_t *holder = json_string(board_holder(board, entry, &answer));
    if (holder == NULL) {
        holder = json_string("?"); /* not UTF-8 */
    }
    reply->status = 200;
    set_body(reply, "application/json", dump(json_pack("{s:o}", "name", holder)));
}

static const char *title_of(unsigned status) {
    switch (status) {
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 414:
        return "URI Too Long";
    case 421:
        return "Misdirected Request";
    default:
        return "Internal Server Error";
    }
}

void http_problem(struct httpd_reply *reply, unsigned status, const char *detail) {
    reply->status = status;
    set_body(reply, "application/problem+json",
             dump(json_pack("{s:s,s:s,s:i,s:s}", "type", "about:blank", "title", title_of(status),
                            "status", (int)status, "detail", detail)));
}
