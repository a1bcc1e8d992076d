#include "publish/page_place.h"

#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOCK_NAME ".gavel-pages.lock"
#define NAME_SIZE (ELECTION_NAME_MAX + sizeof "..lease.new")

static bool fail(struct error *error, const struct page_place *place, const char *what,
                 const char *election) {
    error_set(error, "--page-dir %s: %s%s: %s; give another --page-dir, or off", place->directory,
              what, election, strerror(errno));
    return false;
}

bool page_place_open(struct page_place *place, const char *directory, struct error *error) {
    *place = (struct page_place){.directory = directory, .directory_fd = -1, .lock_fd = -1};
    place->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->directory_fd < 0) {
        return fail(error, place, "cannot open the folder", "");
    }
    place->lock_fd = openat(place->directory_fd, LOCK_NAME,
                            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (place->lock_fd < 0) {
        fail(error, place, "cannot open its lock file ", LOCK_NAME);
        page_place_close(place);
        return false;
    }
    return true;
}

void page_place_close(struct page_place *place) {
    if (place->lock_fd >= 0) {
        close(place->lock_fd);
    }
    if (place->directory_fd >= 0) {
        close(place->directory_fd);
    }
    place->lock_fd = -1;
    place->directory_fd = -1;
}

bool page_place_is_slow(const struct page_place *place) {
    struct statfs system;
    return fstatfs(place->directory_fd, &system) == 0 && system.f_type != TMPFS_MAGIC &&
           system.f_type != RAMFS_MAGIC;
}

/* Where in the lock file an election has its byte (FNV-1a): one descriptor serves all of them. */
static off_t lock_byte(const char *election) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *election != '\0'; election++) {
        hash = (hash ^ (unsigned char)*election) * UINT64_C(1099511628211);
    }
    return (off_t)(hash >> 2);
}

static bool claim(const struct page_place *place, const char *election, struct error *error) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = lock_byte(election), .l_len = 1};
    if (fcntl(place->lock_fd, F_OFD_SETLK, &lock) == 0) {
        return true;
    }
    if (errno != EAGAIN && errno != EACCES) {
        return fail(error, place, "cannot lock the page of ", election);
    }
    error_set(error,
              "--page-dir %s: another gavel writes the page of election %s there: stop that one, "
              "or give this one another --page-dir, or off",
              place->directory, election);
    return false;
}

/* All of it allocated: a full disk must not end a reader or us later (SIGBUS). */
static _Atomic uint64_t *map(int fd) {
    int status = posix_fallocate(fd, 0, GAVEL_PAGE_BYTES);
    if (status != 0) {
        errno = status;
        return NULL;
    }
    void *memory = mmap(NULL, GAVEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

_Atomic uint64_t *page_place_make(struct page_place *place, const char *election,
                                  void (*fill)(void *context, _Atomic uint64_t *words),
                                  void *context, struct error *error) {
    char name[NAME_SIZE];
    char new_name[NAME_SIZE];
    snprintf(name, sizeof name, "%s.lease", election);
    snprintf(new_name, sizeof new_name, ".%s.lease.new", election);
    if (!claim(place, election, error)) {
        return NULL;
    }
    (void)unlinkat(place->directory_fd, new_name, 0); /* of one that was killed here */
    int fd = openat(place->directory_fd, new_name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        fail(error, place, "cannot create the page of ", election);
        return NULL;
    }
    _Atomic uint64_t *words = map(fd);
    bool shown = false;
    if (words != NULL) {
        fill(context, words);
        shown = fchmod(fd, 0644) == 0 &&
                renameat(place->directory_fd, new_name, place->directory_fd, name) == 0;
    }
    if (!shown) {
        fail(error, place, "cannot put into place the page of ", election);
        (void)unlinkat(place->directory_fd, new_name, 0);
        if (words != NULL) {
            (void)munmap((void *)words, GAVEL_PAGE_BYTES);
        }
    }
    close(fd);
    return shown ? words : NULL;
}

void page_place_remove(struct page_place *place, const char *election, _Atomic uint64_t *words) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s.lease", election);
    (void)unlinkat(place->directory_fd, name, 0);
    (void)munmap((void *)words, GAVEL_PAGE_BYTES);
}
