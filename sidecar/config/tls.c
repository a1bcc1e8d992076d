#include "config/tls.h"

#include "base/text.h"

struct store_tls config_tls(const struct config *config) {
    struct store_tls tls = {.paths = {[STORE_TLS_CA] = config->tls_ca,
                                      [STORE_TLS_CERTIFICATE] = config->tls_cert,
                                      [STORE_TLS_KEY] = config->tls_key}};
    return tls;
}

enum option_id config_tls_option(enum store_tls_file file) {
    switch (file) {
    case STORE_TLS_CERTIFICATE:
        return OPTION_TLS_CERT;
    case STORE_TLS_KEY:
        return OPTION_TLS_KEY;
    case STORE_TLS_CA:
    case STORE_TLS_FILES:
        break;
    }
    return OPTION_TLS_CA;
}

static void say(const struct config *config, enum store_tls_file file, const char *what,
                struct error *text) {
    char path[200];
    const char *given = config_tls(config).paths[file];
    error_set(text, "--%s %s %.250s", options[config_tls_option(file)].name,
              text_quote(given != NULL ? given : "", path, sizeof path), what);
}

void config_tls_problem(const struct config *config, const struct store_tls_finding *finding,
                        struct error *text) {
    say(config, finding->file, finding->error.text, text);
}

void config_tls_exposed(const struct config *config, struct error *text) {
    say(config, STORE_TLS_KEY, "may be read by others than its owner: chmod 600 it", text);
}
