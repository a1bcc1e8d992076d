/* The record that the local store keeps in a file. What is taken for one is within its bounds and
 * is, written again, the same bytes; whatever else is there has a reason. */
#include "store/local/record.h"

#include "election/election.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct record record;
    const char *why = NULL;
    char *text = malloc(size > 0 ? size : 1); /* not ended by NUL, as it is read from a file */
    require(text != NULL);
    memcpy(text, data, size);
    if (!record_parse(text, size, &record, &why)) {
        require(why != NULL && why[0] != '\0');
        free(text);
        return 0;
    }
    require(record.token >= 1 && record.token <= TOKEN_MAX);
    require(record.longest_ttl_ns >= 0 && record.longest_ttl_ns <= RECORD_LONGEST_TTL_NS);
    require(memchr(record.holder, '\0', sizeof record.holder) != NULL);
    char again[RECORD_TEXT_MAX];
    require(record_format(&record, again) == size && memcmp(again, text, size) == 0);
    free(text);
    return 0;
}
