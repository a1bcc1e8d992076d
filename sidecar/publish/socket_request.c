#include "publish/socket_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t socket_check_line(struct socket_client *client, const struct board_entry *entry,
                         const struct answer *answer, char *line, size_t size) {
    int length;
    if (answer->leader) {
        length = snprintf(line, size, "leader %" PRIu64 " %" PRId64 " %" PRId64 "\n", answer->token,
                          answer->valid_ns / NS_PER_MS, answer->deadline_ns);
    } else {
        const char *holder = board_holder(client->server->setup.board, entry, answer);
        length = snprintf(line, size, "follower %s\n", holder[0] == '\0' ? "-" : holder);
    }
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

struct answer socket_answer(struct socket_client *client, struct board_entry *entry) {
    struct board *board = client->server->setup.board;
    return socket_attach_is_of(client, entry) ? board_answer_app(board, entry)
                                              : board_answer(board, entry);
}

static void request_check(struct socket_client *client, struct board_entry *entry) {
    struct answer answer = socket_answer(client, entry);
    char line[SOCKET_CHECK_LINE_SIZE];
    size_t length = socket_check_line(client, entry, &answer, line, sizeof line);
    socket_client_count(client, CODE_OK);
    socket_client_send(client, line, length);
}

static void request_status(struct socket_client *client, struct board_entry *entry) {
    struct board *board = client->server->setup.board;
    struct answer answer = socket_answer(client, entry);
    char *json = board_json(board, entry, &answer);
    size_t length = strlen(json);
    json[length] = '\n'; /* in place of its NUL: it is sent by length */
    socket_client_count(client, CODE_OK);
    socket_client_send(client, json, length + 1);
    free(json);
}

static void request_watch(struct socket_client *client, struct board_entry *entry) {
    struct socket_server *server = client->server;
    if (server->phases[PHASE_WATCHING] >= server->limits.watchers) {
        socket_client_refuse(client, FAULT_TOO_MANY, "too many connections watch");
        return;
    }
    socket_watch_start(client, entry);
}

static void request_attach(struct socket_client *client, struct board_entry *entry) {
    struct socket_server *server = client->server;
    size_t election = (size_t)(entry - server->setup.board->entries);
    if (server->draining) {
        socket_client_fault(client, FAULT_SHUTTING_DOWN, "the process is ending");
    } else if (server->attached[election] != NULL) {
        socket_client_fault(client, FAULT_BUSY, "another connection is attached to it");
    } else {
        socket_attach_start(client, entry);
    }
}

static bool is_being_resigned(const struct socket_server *server, const struct board_entry *entry) {
    for (const struct socket_client *client = server->clients; client != NULL;
         client = client->next) {
        if (client->phase == PHASE_RESIGNING && client->entry == entry) {
            return true;
        }
    }
    return false;
}

static void request_resign(struct socket_client *client, struct board_entry *entry) {
    struct socket_server *server = client->server;
    if (server->draining) {
        socket_client_fault(client, FAULT_SHUTTING_DOWN, "the process is ending");
        return;
    }
    bool asked = is_being_resigned(server, entry);
    client->entry = entry;
    socket_client_set_phase(client, PHASE_RESIGNING);
    if (!asked) {
        size_t election = (size_t)(entry - server->setup.board->entries);
        server->setup.resign(server->setup.context, election);
    }
}

static const struct {
    const char *name;
    void (*run)(struct socket_client *client, struct board_entry *entry);
} verbs[] = {
    {"check", request_check},   {"status", request_status}, {"watch", request_watch},
    {"attach", request_attach}, {"resign", request_resign},
};

struct word {
    const char *text;
    size_t length;
};

/* Splits at spaces; returns how many words there are, fills in the first `most`. */
static size_t split(const char *line, size_t length, struct word *words, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < length;) {
        size_t start = i;
        while (i < length && line[i] != ' ') {
            i++;
        }
        if (i > start) {
            if (count < most) {
                words[count] = (struct word){line + start, i - start};
            }
            count++;
        }
        i++;
    }
    return count;
}

static bool has_control_bytes(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        if (byte < 0x20 || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

#define NAMES_MOST 190

/* "TEXT: billing, reports and 3 more" */
static void fault_with_names(struct socket_client *client, enum socket_fault fault,
                             const char *text) {
    const struct board *board = client->server->setup.board;
    char line[240];
    size_t used = 0;
    for (size_t i = 0; i < board->count; i++) {
        const char *name = board->entries[i].name;
        if (i > 0 && used + strlen(name) > NAMES_MOST) {
            snprintf(line + used, sizeof line - used, " and %zu more", board->count - i);
            break;
        }
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s%s", i > 0 ? ", " : text, name);
    }
    socket_client_fault(client, fault, line);
}

static void run_verb(struct socket_client *client, size_t verb, const struct word *name) {
    enum board_find_error error;
    struct board *board = client->server->setup.board;
    struct board_entry *entry = board_find(board, name->text, name->length, &error);
    if (entry != NULL) {
        verbs[verb].run(client, entry);
    } else if (error == BOARD_NAME_NEEDED) {
        fault_with_names(client, FAULT_NAME_NEEDED, "there are several elections, name one: ");
    } else {
        fault_with_names(client, FAULT_UNKNOWN_ELECTION, "no election of that name here, but: ");
    }
}

void socket_request(struct socket_client *client, const char *line, size_t length) {
    struct word words[2] = {{"", 0}, {"", 0}};
    if (has_control_bytes(line, length)) {
        socket_client_refuse(client, FAULT_BAD_REQUEST, "control characters in the request");
        return;
    }
    size_t count = split(line, length, words, 2);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0] && count > 0; i++) {
        if (words[0].length != strlen(verbs[i].name) ||
            memcmp(words[0].text, verbs[i].name, words[0].length) != 0) {
            continue;
        }
        if (count > 2) {
            socket_client_refuse(client, FAULT_BAD_REQUEST, "a request is VERB or VERB NAME");
        } else {
            run_verb(client, i, &words[1]);
        }
        return;
    }
    socket_client_refuse(client, FAULT_BAD_REQUEST, "verbs: check status watch attach resign");
}
