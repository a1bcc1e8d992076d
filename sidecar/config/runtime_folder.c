#include "config/config.h"
#include "config/options.h"
#include "config/runtime_dir.h"

#include <errno.h>
#include <string.h>

static bool make(const char *folder, const char *option, struct error *error) {
    if (runtime_directory_make(folder)) {
        return true;
    }
    error_set(error, "the runtime directory %s cannot be made: %s; give %s", folder,
              strerror(errno), option);
    return false;
}

bool config_make_runtime_folder(const struct config *config, struct error *error) {
    if (!config->socket_off && config->settings[OPTION_SOCKET].key == NULL) {
        char folder[SOCKET_PATH_MAX + 1];
        size_t length = (size_t)(strrchr(config->socket_path, '/') - config->socket_path);
        memcpy(folder, config->socket_path, length);
        folder[length] = '\0';
        if (!make(folder, "--socket PATH", error)) {
            return false;
        }
    }
    if (!config->page_dir_off && config->settings[OPTION_PAGE_DIR].key == NULL) {
        return make(config->page_dir, "--page-dir DIR or --page-dir off", error);
    }
    return true;
}
