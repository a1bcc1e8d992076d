#ifndef GAVEL_STORE_REDIS_SCRIPTS_H
#define GAVEL_STORE_REDIS_SCRIPTS_H

#include <stddef.h>

/* A script from the folder lua/, made a C array when the program is built. */
struct redis_script {
    const char *body;
    size_t size;
    const char *sha1; /* 40 hex digits, the name under which the server keeps it */
};

extern const struct redis_script redis_script_acquire;
extern const struct redis_script redis_script_renew;
extern const struct redis_script redis_script_release;

#endif
