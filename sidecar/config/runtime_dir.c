#include "config/runtime_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_set(const char *text) {
    return text != NULL && text[0] == '/';
}

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool can_write(const char *path) {
    return is_directory(path) && access(path, W_OK | X_OK) == 0;
}

static bool join(char *path, size_t size, const char *folder, size_t length, const char *name) {
    int written =
        snprintf(path, size, "%.*s%s%s", (int)length, folder, name[0] != '\0' ? "/" : "", name);
    return written >= 0 && (size_t)written < size;
}

/* What a sidecar would use: there and writable, or not there and its parent is. */
static bool can_be_made(const char *parent, const char *path) {
    struct stat status;
    if (lstat(path, &status) == 0) {
        return can_write(path);
    }
    return errno == ENOENT && can_write(parent);
}

bool runtime_directory(const struct runtime_places *places, enum runtime_asker asker, char *path,
                       size_t size) {
    const char *given = places->runtime_directory;
    if (is_set(given)) {
        return join(path, size, given, strcspn(given, ":"), "");
    }
    const char *user = places->user_directory;
    const char *system = places->system_directory;
    if (!join(path, size, system, strlen(system), "gavel")) {
        return false;
    }
    if (can_be_made(system, path)) {
        return true;
    }
    bool system_there = asker == RUNTIME_CLIENT && is_directory(path);
    if (is_set(user)) {
        bool fits = join(path, size, user, strlen(user), "gavel");
        if (!system_there || (fits && is_directory(path))) {
            return fits;
        }
    }
    return system_there && join(path, size, system, strlen(system), "gavel");
}

bool runtime_socket(const struct runtime_places *places, enum runtime_asker asker, char *path,
                    size_t size) {
    if (!runtime_directory(places, asker, path, size)) {
        return false;
    }
    size_t length = strlen(path);
    int written = snprintf(path + length, size - length, "/%s", RUNTIME_SOCKET_NAME);
    return written >= 0 && (size_t)written < size - length;
}

bool runtime_directory_make(const char *path) {
    bool for_all = strncmp(path, RUNTIME_SYSTEM_DIRECTORY "/", 5) == 0 &&
                   strncmp(path, RUNTIME_SYSTEM_DIRECTORY "/user/", 10) != 0;
    if (mkdir(path, for_all ? 0755 : 0700) == 0) {
        return true;
    }
    if (errno == EEXIST && is_directory(path)) {
        return true;
    }
    return false;
}
