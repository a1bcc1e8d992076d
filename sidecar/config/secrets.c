#include "config/secrets.h"

#include "base/file.h"
#include "base/memory.h"
#include "config/config.h"

#include <string.h>

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
    struct file_content content;
    if (!file_read(path, SECRET_MOST + 1, &content, error)) {
        return NULL;
    }
    char *secret = check_secret(content.bytes, content.size, error);
    file_content_finish(&content);
    return secret;
}

static bool reload(char **value, const char *file, const char *name, bool *changed,
                   struct error *error) {
    if (file == NULL) {
        return true;
    }
    struct error why;
    char *fresh = secret_read(file, &why);
    if (fresh == NULL) {
        error_set(error, "%s: %.200s %.200s; the old one stays", name, file, why.text);
        return false;
    }
    *changed = *changed || *value == NULL || strcmp(*value, fresh) != 0;
    memory_free_secret(*value);
    *value = fresh;
    return true;
}

bool config_reload_secrets(struct config *config, bool *changed, struct error *error) {
    *changed = false;
    bool user =
        reload(&config->store_user, config->store_user_file, "--store-user-file", changed, error);
    bool password = reload(&config->store_password, config->store_password_file,
                           "--store-password-file", changed, error);
    return user && password;
}
