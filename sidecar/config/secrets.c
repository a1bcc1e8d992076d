#include "config/secrets.h"

#include "base/memory.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to one byte more than allowed, so that more can be told. Negative: errno is set. */
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

static char *check_secret(char *bytes, size_t length, struct error *error) {
    if (length > 0 && bytes[length - 1] == '\n') {
        length--;
    }
    if (length > SECRET_MOST) {
        error_set(error, "is too long: at most %d bytes", SECRET_MOST);
        return NULL;
    }
    if (memchr(bytes, '\0', length) != NULL) {
        error_set(error, "contains a NUL byte: write the secret as plain text");
        return NULL;
    }
    if (length == 0) {
        error_set(error, "is empty: write the secret into it");
        return NULL;
    }
    return memory_text_part(bytes, length);
}

char *secret_read(const char *path, struct error *error) {
    /* Without O_NONBLOCK a FIFO would stop us here. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot be read: %s", strerror(errno));
        return NULL;
    }
    char *secret = NULL;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        error_set(error, "is not a regular file");
    } else {
        char bytes[SECRET_MOST + 2];
        ssize_t length = read_whole(fd, bytes, sizeof bytes);
        if (length < 0) {
            error_set(error, "cannot be read: %s", strerror(errno));
        } else {
            secret = check_secret(bytes, (size_t)length, error);
        }
        explicit_bzero(bytes, sizeof bytes);
    }
    (void)close(fd);
    return secret;
}

static bool reload(char **value, const char *file, const char *name, struct error *error) {
    if (file == NULL) {
        return true;
    }
    struct error why;
    char *fresh = secret_read(file, &why);
    if (fresh == NULL) {
        error_set(error, "%s: %.200s %.200s; the old one stays", name, file, why.text);
        return false;
    }
    memory_free_secret(*value);
    *value = fresh;
    return true;
}

bool config_reload_secrets(struct config *config, struct error *error) {
    bool user = reload(&config->store_user, config->store_user_file, "--store-user-file", error);
    bool password = reload(&config->store_password, config->store_password_file,
                           "--store-password-file", error);
    return user && password;
}
