#ifndef GAVEL_STORE_REDIS_COMMAND_H
#define GAVEL_STORE_REDIS_COMMAND_H

#include "store/redis/names.h"
#include "store/redis/scripts.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Requests in the protocol's bytes, made by hiredis, binary safe. Each gives heap memory to be
 * freed by redisFreeCommand(), or by the stream it is sent on.
 */
struct redis_command {
    char *bytes;
    size_t size;
};

/* COMMAND and its arguments, all of them plain strings. */
struct redis_command redis_command(size_t count, const char *const *arguments);

/* One of the three scripts for a request; `body` sends its text instead of its hash. */
struct redis_command redis_command_script(enum store_event_type type,
                                          const struct store_setup *setup,
                                          const struct store_request *request,
                                          const struct redis_names *names, bool body);

#endif
