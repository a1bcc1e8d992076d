/* What an application answers --app-check, as it arrives, and, as a URL, where it is asked. What is
 * known of a status line does not change by what follows, and only this host is ever asked. */
#include "base/http_probe.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_status(const uint8_t *data, size_t size) {
    int known = 0;
    for (size_t length = 0; length <= size && length <= 256; length++) {
        char *text = malloc(length > 0 ? length : 1); /* exactly as long as it is */
        require(text != NULL);
        memcpy(text, data, length);
        int status = http_status_parse(text, length);
        free(text);
        require(status >= -1 && status <= 999);
        require(known == 0 || status == known);
        require(status <= 0 || memcmp(data, "HTTP/1.", 7) == 0);
        known = status;
    }
}

static void check_url(const char *url) {
    struct http_target target;
    struct error error = {""};
    if (!http_target_parse(url, &target, &error)) {
        require(error.text[0] != '\0');
        return;
    }
    require(target.v4 || target.v6);
    require(strncmp(target.v4_address, "127.", 4) == 0);
    require(target.port > 0 && target.path[0] == '/');
    require(memchr(target.path, '\0', sizeof target.path) != NULL);
    require(strpbrk(target.host, " \r\n/@") == NULL && strpbrk(target.path, " \r\n") == NULL);
    static const char *const local[] = {"localhost", "127.", "[::1]"};
    bool found = false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        found = found || strncmp(target.host, local[i], strlen(local[i])) == 0;
    }
    require(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_status(data, size);
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    check_url(text);
    free(text);
    return 0;
}
