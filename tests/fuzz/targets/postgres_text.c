/* Texts that reach us by way of libpq: a URL, and after it what a server or libpq said of a
 * connection that failed. Whatever they are, what is told of them is one printable line. */
#include "store/postgres/failure.h"
#include "store/postgres/target.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_line(const char *text, size_t size) {
    require(memchr(text, '\0', size) != NULL);
    for (; *text != '\0'; text++) {
        require((unsigned char)*text >= ' ' && *text != 0x7f);
    }
}

static void check_words(const char *words) {
    char state[PG_SQLSTATE];
    char text[PG_TEXT];
    const char *fix = NULL;
    if (pg_failure_read(words, state, text, sizeof text)) {
        require(strlen(state) == PG_SQLSTATE - 1);
        require(pg_failure_name(pg_failure_of(state)) != NULL);
    }
    check_line(text, sizeof text);
    (void)pg_failure_of_words(text, &fix);
    require(fix != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    char *words = text;
    const char *url = strsep(&words, "\n");
    struct error error = {""};
    if (!pg_target_check(url, &error)) {
        require(error.text[0] != '\0');
    }
    if (words != NULL) {
        check_words(words);
    }
    free(text);
    return 0;
}
