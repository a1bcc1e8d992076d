#include "publish/board.h"

#include "base/memory.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The JSON of one election. Applications ask for it before each side effect, so it is written
 * straight into one buffer: a tree of values for each answer took half of the time of a check.
 */

#define LINE_ROOM 1024 /* what an answer needs as a rule */
#define DIGITS_MOST 20

struct line {
    char *text;
    size_t length;
    size_t room;
};

static void put(struct line *line, const char *bytes, size_t length) {
    if (line->room - line->length < length) {
        line->room = line->room * 2 + length;
        line->text = memory_grow(line->text, line->room, 1);
    }
    memcpy(line->text + line->length, bytes, length);
    line->length += length;
}

static void put_text(struct line *line, const char *text) {
    put(line, text, strlen(text));
}

/* At least so many digits. */
static void put_number(struct line *line, uint64_t number, int digits) {
    char text[DIGITS_MOST];
    size_t at = sizeof text;
    for (; number > 0 || digits > 0; digits--) {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    }
    put(line, text + at, sizeof text - at);
}

/* Printable ASCII that stands in JSON as it is. */
static size_t plain_length(const char *text) {
    size_t length = 0;
    while (text[length] >= ' ' && text[length] <= '~' && text[length] != '"' &&
           text[length] != '\\') {
        length++;
    }
    return length;
}

/* What has to be escaped, or is not even UTF-8. */
static void put_strange(struct line *line, const char *value) {
    json_t *string = json_string(value);
    if (string == NULL) {
        string = json_string("?"); /* not UTF-8 */
    }
    char *text = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (text == NULL) {
        abort(); /* out of memory: a crash lets the lease lapse, which is safe */
    }
    put_text(line, text);
    json_decref(string);
    free(text);
}

static void put_string(struct line *line, const char *value) {
    size_t length = plain_length(value);
    if (value[length] != '\0') {
        put_strange(line, value);
        return;
    }
    put(line, "\"", 1);
    put(line, value, length);
    put(line, "\"", 1);
}

static void put_name(struct line *line, const char *name) {
    put(line, line->length == 0 ? "{" : ",", 1);
    put(line, "\"", 1);
    put_text(line, name);
    put(line, "\":", 2);
}

static void text_member(struct line *line, const char *name, const char *value) {
    put_name(line, name);
    put_string(line, value);
}

static void number_member(struct line *line, const char *name, uint64_t value) {
    put_name(line, name);
    put_number(line, value, 1);
}

/* A number, a boolean or null. */
static void word_member(struct line *line, const char *name, const char *word) {
    put_name(line, name);
    put_text(line, word);
}

/* RFC 3339 in UTC with milliseconds. */
static void time_member(struct line *line, const char *name, int64_t real_ms) {
    int64_t second_ms = NS_PER_S / NS_PER_MS;
    time_t seconds = (time_t)(real_ms / second_ms);
    struct tm utc = {.tm_mday = 1};
    (void)gmtime_r(&seconds, &utc); /* fails beyond the year 2147485547 only */
    const struct {
        int number;
        int digits;
        char before;
    } parts[] = {{utc.tm_year + 1900, 4, '"'},
                 {utc.tm_mon + 1, 2, '-'},
                 {utc.tm_mday, 2, '-'},
                 {utc.tm_hour, 2, 'T'},
                 {utc.tm_min, 2, ':'},
                 {utc.tm_sec, 2, ':'},
                 {(int)(real_ms % second_ms), 3, '.'}};
    put_name(line, name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        put(line, &parts[i].before, 1);
        put_number(line, (uint64_t)parts[i].number, parts[i].digits);
    }
    put(line, "Z\"", 2);
}

static void warnings_member(struct line *line, uint32_t warnings) {
    const char *separator = "";
    word_member(line, "warnings", "[");
    for (unsigned bit = 0; bit < WARNING_COUNT; bit++) {
        if ((warnings & (UINT32_C(1) << bit)) != 0) {
            put_text(line, separator);
            put_string(line, warning_name(bit));
            separator = ",";
        }
    }
    put(line, "]", 1);
}

static void role_members(struct line *line, const struct board *board,
                         const struct board_entry *entry, const struct answer *answer) {
    text_member(line, "state", election_state_name(answer->state));
    word_member(line, "leader", answer->leader ? "true" : "false");
    if (answer->leader) {
        number_member(line, "token", answer->token);
    } else {
        word_member(line, "token", "null");
    }
    number_member(line, "valid_for_ms", (uint64_t)(answer->valid_ns / NS_PER_MS));
    text_member(line, "holder", board_holder(board, entry, answer));
    time_member(line, "since", entry->view.since_real_ns / NS_PER_MS);
    text_member(line, "reason", election_reason_name(answer->reason));
}

static void late_members(struct line *line, const struct board *board,
                         const struct board_entry *entry, const struct answer *answer) {
    char detail[512];
    board_detail(entry, answer, detail, sizeof detail);
    text_member(line, "detail", detail);
    int64_t since_ms = board_holder_since_ms(board, entry, answer);
    if (since_ms > 0) {
        time_member(line, "holder_since", since_ms);
    } else {
        word_member(line, "holder_since", "null");
    }
    const char *safety = failover_safety_name(entry->view.safety);
    if (safety != NULL) {
        text_member(line, "failover_safety", safety);
    } else {
        word_member(line, "failover_safety", "null");
    }
}

char *board_json(const struct board *board, const struct board_entry *entry,
                 const struct answer *answer) {
    char lock_space[512] = "";
    if (board->lock_space != NULL) {
        board->lock_space(board->context, (size_t)(entry - board->entries), lock_space,
                          sizeof lock_space);
    }
    struct line line = {.text = memory_grow(NULL, LINE_ROOM, 1), .room = LINE_ROOM};
    /* The order is part of the interface: new members only at the end. */
    text_member(&line, "election", entry->name);
    text_member(&line, "namespace", board->namespace_);
    text_member(&line, "identity", board->identity);
    role_members(&line, board, entry, answer);
    warnings_member(&line, entry->view.warnings | board->process_warnings);
    number_member(&line, "index", entry->view.index);
    text_member(&line, "store", board->store_kind);
    text_member(&line, "lock_space", lock_space);
    text_member(&line, "mode", board->mode);
    late_members(&line, board, entry, answer);
    put(&line, "}", 2); /* and the NUL */
    return line.text;
}
