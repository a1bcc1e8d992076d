#include "store/local/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often a file may be replaced between opening and locking it before we give up. */
#define REPLACED_MAX 8

struct name {
    char text[PLACE_FILE_MAX];
};

static struct name name_of(const char *election) {
    struct name name;
    snprintf(name.text, sizeof name.text, "%.100s.lock", election);
    return name;
}

static struct flock whole_file(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET}; /* l_pid must be 0 */
    return lock;
}

static struct lock_file_id id_of(const struct stat *status) {
    return (struct lock_file_id){.device = status->st_dev, .inode = status->st_ino};
}

static void open_failed(const struct place_files *files, const char *name, int error_number,
                        struct trouble *trouble) {
    if (error_number == ELOOP) {
        trouble_say(trouble, "refused", files->folder, name, "a symbolic link");
    } else {
        trouble_set(trouble, "cannot open", files->folder, name, error_number);
    }
}

/* The status of an open lock file; false: it is none. */
static bool check_file(const struct place_files *files, const char *name, int fd,
                       struct stat *status, struct trouble *trouble) {
    if (fstat(fd, status) != 0) {
        trouble_set(trouble, "cannot use", files->folder, name, errno);
        return false;
    }
    if (!S_ISREG(status->st_mode)) {
        trouble_say(trouble, "refused", files->folder, name, "not a regular file");
        return false;
    }
    return true;
}

enum lock_file_match lock_file_match(const char *folder, const char *election,
                                     struct lock_file_id id, struct trouble *trouble) {
    struct name name = name_of(election);
    char path[PLACE_DIR_MAX + PLACE_NAME_MAX + PLACE_FILE_MAX + 3];
    struct stat status;

    /* By its whole path: a folder may have been replaced as well. */
    snprintf(path, sizeof path, "%s/%s", folder, name.text);
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return LOCK_FILE_REPLACED;
        }
        trouble_set(trouble, "cannot see", folder, name.text, errno);
        return LOCK_FILE_UNKNOWN;
    }
    bool same = status.st_dev == id.device && status.st_ino == id.inode;
    return same ? LOCK_FILE_SAME : LOCK_FILE_REPLACED;
}

static enum lock_file_tried try_lock(const struct place_files *files, const char *name, int fd,
                                     struct lock_file_id *id, struct trouble *trouble) {
    struct flock lock = whole_file();
    struct stat status;
    if (!check_file(files, name, fd, &status, trouble)) {
        return LOCK_FILE_FAILED;
    }
    *id = id_of(&status);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        return LOCK_FILE_GOT;
    }
    if (errno == EAGAIN || errno == EACCES) {
        return LOCK_FILE_BUSY;
    }
    trouble_set(trouble, "cannot lock", files->folder, name, errno);
    return LOCK_FILE_FAILED;
}

enum lock_file_tried lock_file_take(const struct place_files *files, int *fd,
                                    struct lock_file_id *id, struct trouble *trouble) {
    struct name name = name_of(files->election);
    for (int i = 0; i < REPLACED_MAX; i++) {
        int opened = openat(files->fd, name.text,
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (opened < 0) {
            open_failed(files, name.text, errno, trouble);
            return LOCK_FILE_FAILED;
        }
        enum lock_file_tried tried = try_lock(files, name.text, opened, id, trouble);
        enum lock_file_match match = LOCK_FILE_SAME;
        if (tried != LOCK_FILE_FAILED) {
            match = lock_file_match(files->folder, files->election, *id, trouble);
        }
        if (match == LOCK_FILE_SAME && tried == LOCK_FILE_GOT) {
            *fd = opened;
            return tried;
        }
        close(opened);
        if (match == LOCK_FILE_UNKNOWN) {
            return LOCK_FILE_FAILED;
        }
        if (match == LOCK_FILE_SAME) {
            return tried;
        }
        /* Somebody put another file there: that one is the lock now. */
    }
    trouble_say(trouble, "gave up", files->folder, name.text, "it is replaced again and again");
    return LOCK_FILE_FAILED;
}

static enum lock_file_seen look_at(const struct place_files *files, const char *name, int fd,
                                   struct lock_file_id *id, struct trouble *trouble) {
    struct flock lock = whole_file();
    struct stat status;
    if (!check_file(files, name, fd, &status, trouble)) {
        return LOCK_FILE_UNSEEN;
    }
    *id = id_of(&status);
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        trouble_set(trouble, "cannot ask for the lock of", files->folder, name, errno);
        return LOCK_FILE_UNSEEN;
    }
    return lock.l_type == F_UNLCK ? LOCK_FILE_FREE : LOCK_FILE_HELD;
}

enum lock_file_seen lock_file_look(const struct place_files *files, struct lock_file_id *id,
                                   struct trouble *trouble) {
    struct name name = name_of(files->election);
    memset(id, 0, sizeof *id);
    int fd = openat(files->fd, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT) {
            return LOCK_FILE_FREE;
        }
        open_failed(files, name.text, errno, trouble);
        return LOCK_FILE_UNSEEN;
    }
    enum lock_file_seen seen = look_at(files, name.text, fd, id, trouble);
    close(fd);
    return seen;
}

void lock_file_give(int fd, bool announce) {
    struct flock lock = whole_file();
    lock.l_type = F_UNLCK;
    (void)fcntl(fd, F_OFD_SETLK, &lock); /* close does it in any case */
    if (announce) {
        (void)futimens(fd, NULL); /* tells that the mark is there; a hint */
    }
    close(fd);
}
