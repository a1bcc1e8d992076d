#include "store/local/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
    char record[PLACE_FILE_MAX];
    char temporary[PLACE_FILE_MAX];
};

static struct names names_of(const struct place_files *files) {
    struct names names;
    snprintf(names.record, sizeof names.record, "%.100s.record", files->election);
    snprintf(names.temporary, sizeof names.temporary, "%.100s.tmp", files->election);
    return names;
}

/* Reads up to `size` bytes; -1 with errno. */
static ssize_t read_whole(int fd, char *text, size_t size) {
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, text + have, size - have);
        if (got > 0) {
            have += (size_t)got;
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (ssize_t)have;
}

static bool write_whole(int fd, const char *text, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t part = write(fd, text + done, length - done);
        if (part > 0) {
            done += (size_t)part;
        } else if (part == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

static enum record_found read_open(const struct place_files *files, int fd, const char *name,
                                   struct record *record, struct trouble *trouble) {
    char text[RECORD_TEXT_MAX + 1];
    const char *why = NULL;
    struct stat status;

    if (fstat(fd, &status) != 0) {
        trouble_set(trouble, "cannot read", files->folder, name, errno);
        return RECORD_FAILED;
    }
    if (!S_ISREG(status.st_mode)) {
        trouble_say(trouble, "refused", files->folder, name, "not a regular file");
        return RECORD_FAILED;
    }
    ssize_t length = read_whole(fd, text, sizeof text);
    if (length < 0) {
        trouble_set(trouble, "cannot read", files->folder, name, errno);
        return RECORD_FAILED;
    }
    if (!record_parse(text, (size_t)length, record, &why)) {
        trouble_say(trouble, "ignored", files->folder, name, why);
        return RECORD_SPOILED;
    }
    return RECORD_READ;
}

enum record_found record_read(const struct place_files *files, struct record *record,
                              struct trouble *trouble) {
    struct names names = names_of(files);
    int fd = openat(files->fd, names.record, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT) {
            return RECORD_MISSING;
        }
        if (errno == ELOOP) {
            trouble_say(trouble, "refused", files->folder, names.record, "a symbolic link");
        } else {
            trouble_set(trouble, "cannot open", files->folder, names.record, errno);
        }
        return RECORD_FAILED;
    }
    enum record_found found = read_open(files, fd, names.record, record, trouble);
    close(fd);
    return found;
}

/* A new file with the text in it, on the disk. */
static bool write_temporary(const struct place_files *files, const char *name,
                            const struct record *record) {
    char text[RECORD_TEXT_MAX];
    size_t length = record_format(record, text);

    (void)unlinkat(files->fd, name, 0); /* left by a crash */
    int fd = openat(files->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool written = write_whole(fd, text, length) && fsync(fd) == 0;
    int kept = errno;
    if (close(fd) != 0 && written) {
        written = false;
        kept = errno;
    }
    if (!written) {
        (void)unlinkat(files->fd, name, 0);
        errno = kept;
    }
    return written;
}

bool record_write(const struct place_files *files, const struct record *record,
                  struct trouble *trouble) {
    struct names names = names_of(files);
    if (!write_temporary(files, names.temporary, record)) {
        trouble_set(trouble, "cannot write", files->folder, names.temporary, errno);
        return false;
    }
    if (renameat(files->fd, names.temporary, files->fd, names.record) != 0) {
        trouble_set(trouble, "cannot replace", files->folder, names.record, errno);
        (void)unlinkat(files->fd, names.temporary, 0);
        return false;
    }
    if (fsync(files->fd) != 0) {
        trouble_set(trouble, "cannot sync", files->folder, "", errno);
        return false;
    }
    return true;
}
