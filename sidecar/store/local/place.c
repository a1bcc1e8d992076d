#include "store/local/place.h"

#include "base/log.h"
#include "base/memory.h"
#include "store/local/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <uv.h>

#define RIGHT_FORM "write local:/var/lib/gavel, an absolute path"

void trouble_say(struct trouble *trouble, const char *what, const char *folder, const char *name,
                 const char *why) {
    char *text = trouble->text;
    size_t size = sizeof trouble->text;
    int length = snprintf(text, size, "%s %s/%s: %s", what, folder, name, why);
    if (length >= 0 && (size_t)length < size) {
        return;
    }
    /* What went wrong comes first then, and the path is cut. */
    length = snprintf(text, size, "%s (%s): %s/%s", what, why, folder, name);
    if (length >= 0 && (size_t)length >= size) {
        memcpy(text + size - sizeof "...", "...", sizeof "...");
    }
}

void trouble_set(struct trouble *trouble, const char *what, const char *folder, const char *name,
                 int error_number) {
    char why[100];
    uv_strerror_r(-error_number, why, sizeof why);
    trouble_say(trouble, what, folder, name, why);
}

/* "/run" itself or below it. */
static bool is_under(const char *path, const char *top) {
    size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool lasts(const char *path) {
    return !is_under(path, "/run") && !is_under(path, "/var/run");
}

static bool refuse_run(const char *path, struct error *error) {
    if (lasts(path)) {
        return true;
    }
    error_set(error,
              "local store: %.300s is emptied at a reboot, but the record must last; "
              "write local:/var/lib/gavel",
              path);
    return false;
}

bool place_check(const char *url, struct error *error) {
    const char *dir = url + sizeof PLACE_SCHEME - 1;
    size_t length = strlen(dir);

    if (dir[0] == '/' && dir[1] == '/') {
        error_set(error, "local store: %.300s begins with more than one /; " RIGHT_FORM, url);
        return false;
    }
    if (dir[0] != '/' || dir[1] == '\0') {
        error_set(error, "local store: %.300s names no folder; " RIGHT_FORM, url);
        return false;
    }
    if (length > PLACE_DIR_MAX) {
        error_set(error, "local store: the path has %zu bytes, %d at most", length, PLACE_DIR_MAX);
        return false;
    }
    for (const char *at = dir; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F) {
            error_set(error, "local store: the path has a control character; " RIGHT_FORM);
            return false;
        }
    }
    return refuse_run(dir, error);
}

bool place_is_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length <= PLACE_NAME_MAX && name[0] != '.' && strchr(name, '/') == NULL;
}

static bool sync_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool synced = fsync(fd) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return synced;
}

/* A folder that was made lasts only once the one above it is synced. */
static bool make_folder(const char *path) {
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST;
    }
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    slash[slash == above ? 1 : 0] = '\0';
    return sync_folder(above);
}

static bool fail(struct error *error, const char *what, const char *path) {
    char why[100];
    uv_strerror_r(-errno, why, sizeof why);
    error_set(error, "local store: cannot %s %.300s: %s", what, path, why);
    return false;
}

/* Where DIR really is, before anything is made there. */
static char *resolve(const char *dir, struct error *error) {
    char *path = memory_text(dir);
    char *end = path + strlen(path);
    while (end > path + 1 && end[-1] == '/') {
        *--end = '\0';
    }
    char *found = realpath(path, NULL);
    if (found == NULL && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        *slash = '\0';
        char *above = realpath(slash == path ? "/" : path, NULL);
        if (above != NULL && strcmp(slash + 1, "..") != 0) {
            size_t size = strlen(above) + strlen(slash + 1) + 2;
            found = memory_zeroed(size, 1);
            snprintf(found, size, "%s/%s", strcmp(above, "/") == 0 ? "" : above, slash + 1);
        }
        free(above);
        *slash = '/';
    }
    if (found == NULL && errno == ENOENT) {
        error_set(error,
                  "local store: cannot find %.300s, nor the folder above it; make one of them, for "
                  "this user to write in",
                  path);
    } else if (found == NULL) {
        fail(error, "find", path);
    } else if (strlen(found) > PLACE_DIR_MAX) {
        error_set(error, "local store: the path has %zu bytes, %d at most", strlen(found),
                  PLACE_DIR_MAX);
        free(found);
        found = NULL;
    }
    free(path);
    return found;
}

/* False: trouble says why this descriptor's file system will not do. */
static bool check_file_system(const struct place *place, int fd, struct trouble *trouble,
                              bool log_doubts) {
    struct statfs status;
    const char *name;
    const char *why;
    if (fstatfs(fd, &status) != 0) {
        trouble_set(trouble, "cannot use", place->folder, "", errno);
        return false;
    }
    unsigned long type = (unsigned long)status.f_type;
    enum file_system_verdict verdict = file_system_judge(type, &name, &why);
    if (verdict == FILE_SYSTEM_REFUSED) {
        char text[120];
        snprintf(text, sizeof text, "file system %s (0x%lx): %s", name, type & 0xFFFFFFFFUL, why);
        trouble_say(trouble, "refused", place->folder, "", text);
        return false;
    }
    if (verdict == FILE_SYSTEM_DOUBTFUL && log_doubts) {
        log_event(LOG_WARN, "store-file-system", LOG_TEXT("path", place->folder),
                  LOG_TEXT("type", name), LOG_TEXT("text", why));
    }
    return true;
}

static int open_folder(const struct place *place, struct trouble *trouble, bool log_doubts) {
    int fd = open(place->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int kept = errno;
        if (kept == ELOOP || kept == ENOTDIR) {
            trouble_say(trouble, "refused", place->folder, "", "a link or no folder");
        } else {
            trouble_set(trouble, "cannot open", place->folder, "", kept);
        }
        errno = kept;
        return -1;
    }
    if (!check_file_system(place, fd, trouble, log_doubts)) {
        close(fd);
        errno = EMEDIUMTYPE;
        return -1;
    }
    return fd;
}

int place_open_folder(const struct place *place, bool make, struct trouble *trouble) {
    int fd = open_folder(place, trouble, false);
    if (fd < 0 && errno == ENOENT && make) {
        if (!make_folder(place->dir) || !make_folder(place->folder)) {
            trouble_set(trouble, "cannot make", place->folder, "", errno);
            return -1;
        }
        fd = open_folder(place, trouble, false);
    }
    return fd;
}

static bool make_and_check(const struct place *place, struct error *error) {
    struct trouble trouble;
    if (!make_folder(place->dir)) {
        return fail(error, "make", place->dir);
    }
    if (!make_folder(place->folder)) {
        return fail(error, "make", place->folder);
    }
    int fd = open_folder(place, &trouble, true);
    if (fd < 0) {
        error_set(error, "local store: %s", trouble.text);
        return false;
    }
    close(fd);
    if (faccessat(AT_FDCWD, place->folder, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        return fail(error, "write in", place->folder);
    }
    return true;
}

bool place_init(struct place *place, const char *url, const char *namespace_, struct error *error) {
    memset(place, 0, sizeof *place);
    if (!place_check(url, error)) {
        return false;
    }
    if (!place_is_name(namespace_)) {
        error_set(error, "local store: the namespace cannot be a folder's name");
        return false;
    }
    place->dir = resolve(url + sizeof PLACE_SCHEME - 1, error);
    if (place->dir == NULL) {
        return false;
    }
    size_t size = strlen(place->dir) + strlen(namespace_) + 2;
    place->folder = memory_zeroed(size, 1);
    snprintf(place->folder, size, "%s/%s", place->dir, namespace_);
    place->in_pod = getenv("KUBERNETES_SERVICE_HOST") != NULL;
    if (!refuse_run(place->dir, error) || !make_and_check(place, error)) {
        place_finish(place);
        return false;
    }
    return true;
}

void place_finish(struct place *place) {
    free(place->dir);
    free(place->folder);
    memset(place, 0, sizeof *place);
}
