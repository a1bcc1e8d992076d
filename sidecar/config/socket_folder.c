#include "config/config.h"
#include "config/options.h"
#include "config/runtime_dir.h"

#include <errno.h>
#include <string.h>

bool config_make_socket_folder(const struct config *config, struct error *error) {
    if (config->socket_off || config->settings[OPTION_SOCKET].key != NULL) {
        return true;
    }
    char folder[SOCKET_PATH_MAX + 1];
    size_t length = (size_t)(strrchr(config->socket_path, '/') - config->socket_path);
    memcpy(folder, config->socket_path, length);
    folder[length] = '\0';
    if (!runtime_directory_make(folder)) {
        error_set(error, "the runtime directory %s cannot be made: %s; give --socket PATH", folder,
                  strerror(errno));
        return false;
    }
    return true;
}
