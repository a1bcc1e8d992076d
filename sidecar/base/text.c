#include "base/text.h"

#include <stdbool.h>
#include <string.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* Length of the UTF-8 character that starts here (RFC 3629: shortest form, no surrogates, up to
 * U+10FFFF); 0: none. Looks no further than the first byte that cannot belong to it. */
static size_t utf8_length(const unsigned char *at) {
    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] >= 0xC2 && at[0] <= 0xDF) {
        return is_continuation(at[1]) ? 2 : 0;
    }
    if (at[0] >= 0xE0 && at[0] <= 0xEF) {
        unsigned char least = at[0] == 0xE0 ? 0xA0 : 0x80;
        unsigned char most = at[0] == 0xED ? 0x9F : 0xBF;
        return at[1] >= least && at[1] <= most && is_continuation(at[2]) ? 3 : 0;
    }
    if (at[0] >= 0xF0 && at[0] <= 0xF4) {
        unsigned char least = at[0] == 0xF0 ? 0x90 : 0x80;
        unsigned char most = at[0] == 0xF4 ? 0x8F : 0xBF;
        return at[1] >= least && at[1] <= most && is_continuation(at[2]) && is_continuation(at[3])
                   ? 4
                   : 0;
    }
    return 0;
}

static size_t put(char *out, const char *form, size_t length) {
    memcpy(out, form, length);
    return length;
}

static size_t put_code(char *out, unsigned code) {
    static const char digits[] = "0123456789abcdef";
    const char form[6] = {'\\', 'u', '0', '0', digits[code >> 4 & 15], digits[code & 15]};
    return put(out, form, sizeof form);
}

size_t text_escape_one(const char *text, char out[TEXT_ESCAPED_MAX], size_t *out_length) {
    const unsigned char *at = (const unsigned char *)text;
    size_t taken = utf8_length(at);
    if (taken == 0) {
        *out_length = put(out, "\\ufffd", 6);
        return 1;
    }
    if (taken == 2 && at[0] == 0xC2 && at[1] < 0xA0) {
        *out_length = put_code(out, at[1]); /* C1: terminals obey these too */
    } else if (at[0] == '\n') {
        *out_length = put(out, "\\n", 2);
    } else if (at[0] == '\t') {
        *out_length = put(out, "\\t", 2);
    } else if (at[0] == '\r') {
        *out_length = put(out, "\\r", 2);
    } else if (at[0] == '"' || at[0] == '\\') {
        out[0] = '\\';
        out[1] = *text;
        *out_length = 2;
    } else if (at[0] < 0x20 || at[0] == 0x7F) {
        *out_length = put_code(out, at[0]);
    } else {
        *out_length = put(out, text, taken);
    }
    return taken;
}

const char *text_quote(const char *text, char *out, size_t size) {
    static const char cut_end[] = "...\"";
    size_t length = 1;
    size_t cut_at = 1; /* the last place where the end of a cut text still fits */
    out[0] = '"';
    while (*text != '\0') {
        char form[TEXT_ESCAPED_MAX];
        size_t form_length;
        bool as_is = *text == '"' || *text == '\\';
        text += text_escape_one(text, form, &form_length);
        if (as_is) {
            form[0] = form[1];
            form_length = 1;
        }
        if (length + form_length + 2 > size) {
            memcpy(out + cut_at, cut_end, sizeof cut_end);
            return out;
        }
        memcpy(out + length, form, form_length);
        length += form_length;
        if (length + sizeof cut_end <= size) {
            cut_at = length;
        }
    }
    memcpy(out + length, "\"", 2);
    return out;
}
