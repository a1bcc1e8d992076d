#include "publish/socket_place.h"

#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 512 /* the kernel cuts it to net.core.somaxconn */

static bool fail(struct error *error, const char *path, const char *what) {
    error_set(error, "--socket %s: %s: %s", path, what, strerror(errno));
    return false;
}

static bool take_lock(struct socket_place *place, struct error *error) {
    char path[SOCKET_PATH_MAX + sizeof ".lock"];
    snprintf(path, sizeof path, "%s.lock", place->path);
    place->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (place->lock_fd < 0) {
        return fail(error, place->path, "cannot open its lock file (the path with .lock)");
    }
    if (flock(place->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return true;
    }
    if (errno != EWOULDBLOCK) {
        return fail(error, place->path, "cannot lock its lock file (the path with .lock)");
    }
    error_set(error,
              "--socket %s: another gavel is running on it: stop that one, or give this one "
              "another --socket",
              place->path);
    return false;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
    return address;
}

static int connect_errno(const char *path) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    struct sockaddr_un address = address_of(path);
    int result = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    return result;
}

/* Whether the path is free, or holds a socket that nobody listens on. */
static bool may_replace(const struct socket_place *place, struct error *error) {
    struct stat found;
    if (lstat(place->path, &found) != 0) {
        return errno == ENOENT || fail(error, place->path, "cannot look at it");
    }
    if (!S_ISSOCK(found.st_mode)) {
        error_set(error,
                  "--socket %s: there is a file that is not a socket: remove it, or give "
                  "another --socket",
                  place->path);
        return false;
    }
    int result = connect_errno(place->path);
    if (result == ECONNREFUSED || result == ENOENT) {
        return true;
    }
    if (result == 0 || result == EAGAIN) {
        error_set(error,
                  "--socket %s: another program listens on it: stop that one, or give "
                  "another --socket",
                  place->path);
        return false;
    }
    errno = result;
    return fail(error, place->path, "cannot find out whether it is in use");
}

/* A name for the time before it is ready, in the folder of `path`. A long path goes through the
 * folder's descriptor: sun_path is short. */
static void temporary_name(const char *path, int folder_fd, char *name, size_t size) {
    uint32_t number;
    random_bytes(&number, sizeof number);
    const char *slash = strrchr(path, '/');
    int folder_length = slash == NULL ? 0 : (int)(slash - path) + 1;
    int length = snprintf(name, size, "%.*s.gavel-%08x", folder_length, path, number);
    if (length < 0 || (size_t)length >= size) {
        snprintf(name, size, "/proc/self/fd/%d/.gavel-%08x", folder_fd, number);
    }
}

static int open_folder(const char *path) {
    char folder[SOCKET_PATH_MAX + 1] = ".";
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        int length = slash == path ? 1 : (int)(slash - path);
        snprintf(folder, sizeof folder, "%.*s", length, path);
    }
    return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Nobody can connect before listen(), and nobody sees the path before the rename. */
static bool bind_and_show(struct socket_place *place, const char *name, unsigned mode,
                          struct error *error) {
    struct sockaddr_un address = address_of(name);
    mode_t umask_before = umask(0077);
    int bound = bind(place->listen_fd, (struct sockaddr *)&address, sizeof address);
    umask(umask_before);
    if (bound != 0) {
        return fail(error, place->path, "cannot create a socket in its folder");
    }
    struct stat made;
    bool shown = chmod(name, (mode_t)mode) == 0 && lstat(name, &made) == 0 &&
                 listen(place->listen_fd, BACKLOG) == 0 && rename(name, place->path) == 0;
    if (!shown) {
        fail(error, place->path, "cannot put the socket into place");
        unlink(name);
        return false;
    }
    place->device = made.st_dev;
    place->inode = made.st_ino;
    return true;
}

static bool listen_at_path(struct socket_place *place, unsigned mode, struct error *error) {
    int folder_fd = open_folder(place->path);
    if (folder_fd < 0) {
        return fail(error, place->path, "cannot open its folder");
    }
    bool shown = false;
    place->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (place->listen_fd < 0) {
        fail(error, place->path, "cannot create a socket");
    } else {
        char name[SOCKET_PATH_MAX + 1];
        temporary_name(place->path, folder_fd, name, sizeof name);
        shown = bind_and_show(place, name, mode, error);
    }
    close(folder_fd);
    return shown;
}

static void close_descriptors(struct socket_place *place) {
    if (place->listen_fd >= 0) {
        close(place->listen_fd);
    }
    if (place->lock_fd >= 0) {
        close(place->lock_fd);
    }
    place->listen_fd = -1;
    place->lock_fd = -1;
}

bool socket_place_open(struct socket_place *place, const char *path, unsigned mode,
                       struct error *error) {
    *place = (struct socket_place){.listen_fd = -1, .lock_fd = -1};
    size_t length = strlen(path);
    if (length == 0 || length > SOCKET_PATH_MAX) {
        error_set(error, "--socket: a path has 1 to %d bytes, this one has %zu", SOCKET_PATH_MAX,
                  length);
        return false;
    }
    memcpy(place->path, path, length + 1);
    if (take_lock(place, error) && may_replace(place, error) &&
        listen_at_path(place, mode, error)) {
        return true;
    }
    close_descriptors(place);
    return false;
}

void socket_place_close(struct socket_place *place) {
    /* Before the descriptor goes: until then the inode's number cannot be used again. */
    struct stat found;
    if (lstat(place->path, &found) == 0 && found.st_dev == place->device &&
        found.st_ino == place->inode) {
        unlink(place->path);
    }
    close_descriptors(place);
}
