#ifndef GAVEL_PUBLISH_SOCKET_PLACE_H
#define GAVEL_PUBLISH_SOCKET_PLACE_H

#include "base/error.h"
#include "config/config.h"

#include <sys/types.h>

/*
 * A listening Unix socket at its path. PATH.lock is locked (flock) for as long as it exists, so
 * that two servers on one path exclude each other; that file stays behind, since removing it would
 * let two of them hold a lock each.
 */
struct socket_place {
    char path[SOCKET_PATH_MAX + 1];
    int listen_fd; /* non-blocking, close-on-exec */
    int lock_fd;
    dev_t device; /* of the socket file */
    ino_t inode;
};

/* Appears at its path in one step, with its final mode and already listening. Replaces a socket
 * file only when connecting to it is refused. False: error is set, nothing is left behind. */
bool socket_place_open(struct socket_place *place, const char *path, unsigned mode,
                       struct error *error);

/* Removes the socket file if it is still this one, then lets the lock go. */
void socket_place_close(struct socket_place *place);

#endif
