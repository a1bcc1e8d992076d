#ifndef GAVEL_CONFIG_RUNTIME_DIR_H
#define GAVEL_CONFIG_RUNTIME_DIR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The folder of the socket when no path is given; one rule for the sidecar and for those that talk
 * to it. libc only, re-entrant.
 *
 *   1. $RUNTIME_DIRECTORY, as systemd sets it (the first, if several)
 *   2. /run/gavel, where it can be made or written
 *   3. $XDG_RUNTIME_DIR/gavel
 *
 * Who asks may be another user than the sidecar's, and cannot write where that one could: then
 * /run/gavel is taken if it is there, unless a sidecar of this user left the third.
 */
struct runtime_places {
    const char *runtime_directory; /* $RUNTIME_DIRECTORY; NULL: not set */
    const char *system_directory;  /* "/run" */
    const char *user_directory;    /* $XDG_RUNTIME_DIR; NULL: not set */
};

enum runtime_asker { RUNTIME_SIDECAR, RUNTIME_CLIENT };

#define RUNTIME_SYSTEM_DIRECTORY "/run"
#define RUNTIME_SOCKET_NAME "gavel.sock"

/* Writes the folder's path; makes nothing. False: there is none, or it does not fit. */
bool runtime_directory(const struct runtime_places *places, enum runtime_asker asker, char *path,
                       size_t size);

/* The same, for the socket in it. */
bool runtime_socket(const struct runtime_places *places, enum runtime_asker asker, char *path,
                    size_t size);

/* Makes the folder if it is not there: 0755 under /run, else 0700. False: errno is set. */
bool runtime_directory_make(const char *path);

#endif
