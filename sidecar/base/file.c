#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for `size` bytes and a NUL; what was there goes along, and leaves no trace. */
static void make_room(struct file_content *content, size_t size) {
    char *bytes = memory_zeroed(1, size + 1);
    size_t kept = content->size;
    if (kept > 0) {
        memcpy(bytes, content->bytes, kept);
    }
    mode_t mode = content->mode;
    file_content_finish(content);
    *content = (struct file_content){.bytes = bytes, .size = kept, .mode = mode};
}

/* Reads until the end, or until there are `room` bytes. False: errno is set. */
static bool fill(int fd, struct file_content *content, size_t room) {
    while (content->size < room) {
        ssize_t got = read(fd, content->bytes + content->size, room - content->size);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return false;
        }
        content->size += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool read_open(int fd, size_t most, struct file_content *content, struct error *error) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        error_set(error, "is not a regular file");
        return false;
    }
    content->mode = status.st_mode;
    size_t size = status.st_size > 0 ? (size_t)status.st_size : 0;
    /* One byte more, to see the end; a file may have grown since, or not say its size. */
    for (size_t room = size < most ? size + 1 : most + 1; content->size <= most;
         room = room > most / 2 ? most + 1 : room * 2) {
        make_room(content, room);
        if (!fill(fd, content, room)) {
            error_set(error, "cannot be read: %s", strerror(errno));
            file_content_finish(content);
            return false;
        }
        if (content->size < room) {
            return true;
        }
    }
    error_set(error, "is too long: at most %zu bytes", most);
    file_content_finish(content);
    return false;
}

bool file_read(const char *path, size_t most, struct file_content *content, struct error *error) {
    *content = (struct file_content){.bytes = NULL};
    /* Without O_NONBLOCK a FIFO would stop us here. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot be read: %s", strerror(errno));
        return false;
    }
    bool good = read_open(fd, most, content, error);
    (void)close(fd);
    return good;
}

void file_content_finish(struct file_content *content) {
    if (content->bytes != NULL) {
        explicit_bzero(content->bytes, content->size);
    }
    free(content->bytes);
    *content = (struct file_content){.bytes = NULL};
}
