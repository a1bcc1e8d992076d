#include "config/names.h"

#include <stddef.h>
#include <string.h>

#define NAME_MOST 100
#define IDENTITY_MOST 128

static bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool name_is_valid(const char *text) {
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char c = text[length];
        bool other = length > 0 && (c == '.' || c == '_' || c == '-');
        if (length == NAME_MOST || !(is_letter_or_digit(c) || other)) {
            return false;
        }
    }
    return length > 0;
}

bool name_is_identity(const char *text) {
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char c = text[length];
        if (length == IDENTITY_MOST || c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '`') {
            return false;
        }
    }
    return length > 0 && strcmp(text, "-") != 0 && strcmp(text, "?") != 0;
}
