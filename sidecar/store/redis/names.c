#include "store/redis/names.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election) {
    char space[REDIS_NAME_SIZE];
    char text[4 * REDIS_NAME_SIZE];
    int length = snprintf(space, sizeof space, "gavel:{%s/%s}", namespace_, election);
    *names = (struct redis_names){.space = NULL};
    if (length <= 0 || length + (int)sizeof ":released" > (int)sizeof space) {
        return false;
    }
    size_t size = (size_t)snprintf(text, sizeof text, "%s%c%s:lease%c%s:record%c%s:released", space,
                                   '\0', space, '\0', space, '\0', space) +
                  1;
    char *block = memory_grow(NULL, size, 1);
    memcpy(block, text, size);
    names->space = block;
    names->lease = names->space + strlen(names->space) + 1;
    names->record = names->lease + strlen(names->lease) + 1;
    names->channel = names->record + strlen(names->record) + 1;
    return true;
}

void redis_names_finish(struct redis_names *names) {
    free((char *)names->space); /* one block, which begins there */
    *names = (struct redis_names){.space = NULL};
}
