#include "store/redis/names.h"

#include <stdio.h>

static bool put(char *out, const char *space, const char *suffix) {
    int length = snprintf(out, REDIS_NAME_SIZE, "%s%s", space, suffix);
    return length > 0 && length < REDIS_NAME_SIZE;
}

bool redis_names_init(struct redis_names *names, const char *namespace_, const char *election) {
    int length = snprintf(names->space, sizeof names->space, "gavel:{%s/%s}", namespace_, election);
    return length > 0 && length < (int)sizeof names->space &&
           put(names->lease, names->space, ":lease") &&
           put(names->record, names->space, ":record") &&
           put(names->channel, names->space, ":released");
}
