#include "cli/flat.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MOST 8

/* Where the value's text goes; bytes NULL: nowhere. */
struct sink {
    char *bytes;
    size_t size, length;
    bool full;
};

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* A whole character or nothing, so that a cut text stays UTF-8. */
static void sink_put(struct sink *sink, const char *bytes, size_t count) {
    if (sink == NULL || sink->full) {
        return;
    }
    if (count >= sink->size - sink->length) {
        sink->full = true;
        return;
    }
    memcpy(sink->bytes + sink->length, bytes, count);
    sink->length += count;
    sink->bytes[sink->length] = '\0';
}

/* Four hexadecimal digits; negative: not that. */
static int32_t hex4(const char *at) {
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    return code;
}

static void put_code(struct sink *sink, int32_t code) {
    char bytes[3];
    if (code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0xD800 && code < 0xE000)) {
        sink_put(sink, "?", 1); /* controls, and halves of what is beyond U+FFFF */
    } else if (code < 0x80) {
        bytes[0] = (char)code;
        sink_put(sink, bytes, 1);
    } else if (code < 0x800) {
        bytes[0] = (char)(0xC0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3F));
        sink_put(sink, bytes, 2);
    } else {
        bytes[0] = (char)(0xE0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (code & 0x3F));
        sink_put(sink, bytes, 3);
    }
}

/* What follows a backslash; NULL: nothing that may. */
static const char *take_escape(const char *at, struct sink *sink) {
    static const char plain[] = "\"\\/";
    if (*at == 'u') {
        int32_t code = hex4(at + 1);
        if (code < 0) {
            return NULL;
        }
        put_code(sink, code);
        return at + 5;
    }
    if (*at != '\0' && strchr("bfnrt", *at) != NULL) {
        sink_put(sink, "?", 1);
        return at + 1;
    }
    if (*at != '\0' && strchr(plain, *at) != NULL) {
        sink_put(sink, at, 1);
        return at + 1;
    }
    return NULL;
}

/* Bytes of a character that starts here, as far as they are there. */
static size_t character_length(const char *at) {
    size_t length = 1;
    while ((unsigned char)at[0] >= 0xC0 && length < 4 &&
           ((unsigned char)at[length] & 0xC0) == 0x80) {
        length++;
    }
    return length;
}

static const char *take_string(const char *at, struct sink *sink) {
    at++;
    while (*at != '"') {
        if (*at == '\\') {
            at = take_escape(at + 1, sink);
            if (at == NULL) {
                return NULL;
            }
            continue;
        }
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20) {
            return NULL; /* the end too */
        }
        size_t length = character_length(at);
        bool control = byte == 0x7F || (length == 1 && byte >= 0x80) ||
                       (length == 2 && byte == 0xC2 && (unsigned char)at[1] < 0xA0);
        sink_put(sink, control ? "?" : at, control ? 1 : length);
        at += length;
    }
    return at + 1;
}

static const char *take_value(const char *at, struct sink *sink, int depth);

static const char *take_array(const char *at, struct sink *sink, int depth) {
    at = skip_space(at + 1);
    if (*at == ']') {
        return at + 1;
    }
    for (;;) {
        at = take_value(at, sink, depth);
        if (at == NULL) {
            return NULL;
        }
        at = skip_space(at);
        if (*at == ']') {
            return at + 1;
        }
        if (*at != ',') {
            return NULL;
        }
        sink_put(sink, ", ", 2);
        at = skip_space(at + 1);
    }
}

/* An object; the value of the member `name`, if one is asked for, goes to the sink. */
static const char *take_object(const char *at, const char *name, struct sink *sink, int depth,
                               bool *found) {
    at = skip_space(at + 1);
    if (*at == '}') {
        return at + 1;
    }
    for (;;) {
        char key_bytes[64] = "";
        struct sink key = {.bytes = key_bytes, .size = sizeof key_bytes};
        at = *at == '"' ? take_string(at, &key) : NULL;
        at = at != NULL ? skip_space(at) : NULL;
        if (at == NULL || *at != ':') {
            return NULL;
        }
        bool wanted = name != NULL && !*found && !key.full && strcmp(key_bytes, name) == 0;
        at = take_value(skip_space(at + 1), wanted ? sink : NULL, depth);
        if (at == NULL) {
            return NULL;
        }
        if (wanted) {
            *found = true;
        }
        at = skip_space(at);
        if (*at == '}') {
            return at + 1;
        }
        if (*at != ',') {
            return NULL;
        }
        at = skip_space(at + 1);
    }
}

/* A number or a word; what the number is worth does not matter here. */
static const char *take_plain(const char *at, struct sink *sink) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(at, words[i], length) == 0) {
            sink_put(sink, words[i], length);
            return at + length;
        }
    }
    size_t length = strspn(at, "+-.0123456789eE");
    bool number = at[0] == '-' || (at[0] >= '0' && at[0] <= '9');
    if (!number) {
        return NULL;
    }
    sink_put(sink, at, length);
    return at + length;
}

static const char *take_value(const char *at, struct sink *sink, int depth) {
    if (depth == 0) {
        return NULL;
    }
    if (*at == '"') {
        return take_string(at, sink);
    }
    if (*at == '[') {
        return take_array(at, sink, depth - 1);
    }
    if (*at == '{') {
        bool found = false;
        return take_object(at, NULL, NULL, depth - 1, &found);
    }
    return take_plain(at, sink);
}

bool flat_is_object(const char *json) {
    bool found = false;
    const char *at = skip_space(json);
    at = *at == '{' ? take_object(at, NULL, NULL, DEPTH_MOST, &found) : NULL;
    return at != NULL && *skip_space(at) == '\0';
}

bool flat_find(const char *json, const char *name, char *text, size_t size) {
    bool found = false;
    struct sink sink = {.bytes = text, .size = size};
    text[0] = '\0';
    return take_object(skip_space(json), name, &sink, DEPTH_MOST, &found) != NULL && found;
}
