#include "store/local/record.h"

#include "election/election.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "gavel-record"
#define NONCE_HEX ((size_t)2 * NONCE_BYTES)

/* Readers show holders; what they cannot show becomes "?". */
static bool can_be_shown(const char *holder, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = holder[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '`') {
            return false;
        }
    }
    return length > 0 && length <= IDENTITY_MAX;
}

static void format_nonce(const unsigned char *nonce, char text[2 * NONCE_BYTES + 1]) {
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", nonce[i]);
    }
}

size_t record_format(const struct record *record, char text[RECORD_TEXT_MAX]) {
    char nonce[2 * NONCE_BYTES + 1];
    const char *holder = record->holder;
    format_nonce(record->nonce, nonce);
    if (!can_be_shown(holder, strlen(holder))) {
        holder = "?";
    }
    int length = snprintf(text, RECORD_TEXT_MAX,
                          MAGIC " 1\n"
                                "token %" PRIu64 "\n"
                                "clean %d\n"
                                "longest_ttl_ns %" PRId64 "\n"
                                "nonce %s\n"
                                "written_ms %" PRId64 "\n"
                                "holder %s\n"
                                "end\n",
                          record->token, record->clean ? 1 : 0, record->longest_ttl_ns, nonce,
                          record->written_ms, holder);
    return (size_t)length; /* every field is bounded, and so is their sum */
}

/* What is left of the text. */
struct rest {
    const char *at;
    size_t length;
};

/* The value of the next line, which must be "KEY VALUE\n". */
static bool next_value(struct rest *rest, const char *key, struct rest *value) {
    size_t key_length = strlen(key);
    const char *line_end = memchr(rest->at, '\n', rest->length);
    if (line_end == NULL) {
        return false;
    }
    size_t line_length = (size_t)(line_end - rest->at);
    if (line_length <= key_length || memcmp(rest->at, key, key_length) != 0 ||
        rest->at[key_length] != ' ') {
        return false;
    }
    value->at = rest->at + key_length + 1;
    value->length = line_length - key_length - 1;
    rest->at += line_length + 1;
    rest->length -= line_length + 1;
    return true;
}

static bool next_number(struct rest *rest, const char *key, uint64_t least, uint64_t most,
                        uint64_t *number) {
    struct rest value;
    if (!next_value(rest, key, &value) || value.length == 0 || value.length > 18 ||
        (value.at[0] == '0' && value.length > 1)) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9') {
            return false;
        }
        *number = *number * 10 + (uint64_t)(value.at[i] - '0');
    }
    return *number >= least && *number <= most;
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

static bool next_nonce(struct rest *rest, unsigned char *nonce) {
    struct rest value;
    if (!next_value(rest, "nonce", &value) || value.length != NONCE_HEX) {
        return false;
    }
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        int high = hex_digit(value.at[2 * i]);
        int low = hex_digit(value.at[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        nonce[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool next_holder(struct rest *rest, char *holder) {
    struct rest value;
    if (!next_value(rest, "holder", &value) || !can_be_shown(value.at, value.length)) {
        return false;
    }
    memcpy(holder, value.at, value.length);
    holder[value.length] = '\0';
    return true;
}

bool record_parse(const char *text, size_t length, struct record *record, const char **why) {
    struct rest rest = {text, length};
    struct rest version;
    struct record read = {0};
    uint64_t clean, longest_ttl_ns, written_ms;

    if (length > RECORD_TEXT_MAX) {
        *why = "too long for a record";
        return false;
    }
    if (!next_value(&rest, MAGIC, &version)) {
        *why = "not a record";
        return false;
    }
    if (version.length != 1 || version.at[0] != '1') {
        *why = "a record of another version";
        return false;
    }
    if (!next_number(&rest, "token", 1, TOKEN_MAX, &read.token) ||
        !next_number(&rest, "clean", 0, 1, &clean) ||
        !next_number(&rest, "longest_ttl_ns", 1, RECORD_LONGEST_TTL_NS, &longest_ttl_ns) ||
        !next_nonce(&rest, read.nonce) ||
        !next_number(&rest, "written_ms", 0, INT64_MAX, &written_ms) ||
        !next_holder(&rest, read.holder) || rest.length != 4 || memcmp(rest.at, "end\n", 4) != 0) {
        *why = "a damaged record";
        return false;
    }
    read.clean = clean == 1;
    read.longest_ttl_ns = (int64_t)longest_ttl_ns;
    read.written_ms = (int64_t)written_ms;
    *record = read;
    return true;
}
