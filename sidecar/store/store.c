#include "store/store.h"

#include "store/local/local.h"
#include "store/postgres/postgres.h"
#include "store/redis/redis.h"
#include "store/redlock/redlock.h"

#include <stdio.h>

/* Every store there is. A new one is a line here and its folder in CMakeLists.txt. */
static const struct {
    const struct store_ops *ops;
    const char *form; /* how its URL looks */
} stores[] = {
    {&local_store_ops, "local:DIR"},
    {&redis_store_ops, "redis://HOST:PORT/DATABASE, redis+sentinel://HOST,HOST,HOST/MASTER, both "
                       "with TLS as rediss, redis+unix:///PATH"},
    {&redlock_store_ops, "redlock:URL,URL,URL of independent Redis servers"},
    {&postgres_store_ops, "postgres://USER@HOST:PORT/DATABASE"},
};

const struct store_ops *store_for_url(const char *url, struct error *error) {
    char forms[320] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        if (stores[i].ops->claims(url)) {
            return stores[i].ops;
        }
        int added = snprintf(forms + length, sizeof forms - length, "%s%s", i > 0 ? ", " : "",
                             stores[i].form);
        length += (size_t)added;
        if (length >= sizeof forms) {
            length = sizeof forms - 1;
        }
    }
    /* The URL itself may hold a password. */
    error_set(error, "no store has a URL of this form; there is: %s", forms);
    return NULL;
}
