/* What a sidecar answers gavelctl: the line of `check`, and the JSON of `status`. Whatever it is,
 * what is shown on a terminal is printable and within its bounds. */
#include "cli/reply.h"
#include "cli/flat.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_text(const char *text, size_t size) {
    require(memchr(text, '\0', size) != NULL);
    for (; *text != '\0'; text++) {
        require((unsigned char)*text >= ' ' && *text != 0x7f);
    }
}

static void check_line(const char *line) {
    struct reply reply = reply_parse(line);
    check_text(reply.holder, sizeof reply.holder);
    check_text(reply.code, sizeof reply.code);
    check_text(reply.text, sizeof reply.text);
    if (reply.kind == REPLY_LEADER) {
        require(reply.token > 0 && reply.valid_ns >= 0 && reply.deadline_ns >= 0);
    }
    struct reply error;
    if (reply_is_error(line, &error)) {
        require(error.kind == REPLY_ERROR && error.code[0] != '\0');
        (void)reply_blames_name(&error);
    }
}

static void check_status(const char *json) {
    static const char *const names[] = {"state", "leader", "token", "warnings", "holder", ""};
    char text[64];
    if (!flat_is_object(json)) {
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        memset(text, 0x55, sizeof text);
        if (flat_find(json, names[i], text, sizeof text)) {
            check_text(text, sizeof text);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    check_line(text);
    check_status(text);
    free(text);
    return 0;
}
