#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to `size` bytes. Negative: errno is set. */
static ssize_t read_whole(int fd, char *bytes, size_t size) {
    size_t length = 0;
    while (length < size) {
        ssize_t got = read(fd, bytes + length, size - length);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return -1;
        }
        length += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)length;
}

static bool read_open(int fd, size_t most, struct file_content *content, struct error *error) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        error_set(error, "is not a regular file");
        return false;
    }
    /* One byte more than allowed, so that more can be told, and the NUL. */
    content->bytes = memory_zeroed(1, most + 2);
    content->mode = status.st_mode;
    ssize_t length = read_whole(fd, content->bytes, most + 1);
    content->size = length > 0 ? (size_t)length : 0;
    if (length < 0) {
        error_set(error, "cannot be read: %s", strerror(errno));
    } else if (content->size > most) {
        error_set(error, "is too long: at most %zu bytes", most);
    } else {
        return true;
    }
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
