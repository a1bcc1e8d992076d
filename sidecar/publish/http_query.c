#include "publish/http_query.h"

#include "config/duration.h"

#include <string.h>

#define INDEX_DIGITS_MOST 20
#define WAIT_BYTES_MOST 32

static bool parse_index(const char *text, size_t length, uint64_t *index) {
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number)) {
            return false;
        }
    }
    *index = number;
    return length > 0 && length <= INDEX_DIGITS_MOST;
}

static bool parse_wait(const char *value, size_t length, int64_t *wait_ns) {
    char text[WAIT_BYTES_MOST + 1];
    if (length > WAIT_BYTES_MOST) {
        return false;
    }
    memcpy(text, value, length);
    text[length] = '\0';
    if (duration_parse(text, wait_ns) != NULL) {
        return false;
    }
    if (*wait_ns > HTTP_WAIT_MOST_NS) {
        *wait_ns = HTTP_WAIT_MOST_NS;
    }
    return true;
}

/* One "NAME=VALUE". */
static bool parse_pair(struct http_query *parsed, const char *pair, size_t length, bool *has_wait,
                       const char **problem) {
    if (length > 6 && memcmp(pair, "index=", 6) == 0 && !parsed->has_index) {
        parsed->has_index = true;
        *problem = "bad query: index is a number, as in an earlier answer";
        return parse_index(pair + 6, length - 6, &parsed->index);
    }
    if (length > 5 && memcmp(pair, "wait=", 5) == 0 && !*has_wait) {
        *has_wait = true;
        *problem = "bad query: wait is a time with its unit, as in wait=10s";
        return parse_wait(pair + 5, length - 5, &parsed->wait_ns);
    }
    *problem = "bad query: there is index=NUMBER and wait=TIME, each once";
    return false;
}

bool http_query_parse(struct http_query *parsed, const char *query, const char **problem) {
    *parsed = (struct http_query){.wait_ns = HTTP_WAIT_MOST_NS};
    bool has_wait = false;
    while (query != NULL && *query != '\0') {
        size_t length = strcspn(query, "&");
        if (!parse_pair(parsed, query, length, &has_wait, problem)) {
            return false;
        }
        query += length;
        if (*query == '&' && *++query == '\0') {
            *problem = "bad query: nothing follows the last \"&\"";
            return false;
        }
    }
    if (has_wait && !parsed->has_index) {
        *problem = "bad query: wait goes with an index, that of an earlier answer";
        return false;
    }
    return true;
}
