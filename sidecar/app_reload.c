#include "app_internal.h"

#include "config/tls.h"

/* What is read again at run time: secrets and TLS files. */

#define LOG_EVERY_MS 10000

/* False: one could not be read. */
static bool reload_secrets(struct app *app, bool *changed, struct error *error) {
    bool all = config_reload_secrets(app->config, changed, error);
    /* One of them may be new although another could not be read. */
    app->store_secrets.user = app->config->store_user;
    app->store_secrets.password = app->config->store_password;
    app->store_secrets.generation += *changed;
    return all;
}

void app_refresh_secrets(void *context) {
    struct app *app = context;
    struct error error = {""};
    bool changed = false;
    uint64_t suppressed = 0;
    if (!reload_secrets(app, &changed, &error)) {
        if (log_allow(&app->reload_limit, LOG_EVERY_MS, &suppressed)) {
            log_event(LOG_ERROR, "reload-failed", LOG_TEXT("error", error.text),
                      LOG_NUMBER("suppressed", suppressed));
        }
    } else if (changed) {
        log_event(LOG_INFO, "reloaded", LOG_TEXT("what", "secrets"),
                  LOG_TEXT("why", "the store refused the old ones"));
    }
}

static void reload_tls(struct app *app) {
    struct store_tls_finding finding;
    struct error text = {""};
    if (app->store == NULL || app->closing || app->store_ops->uses_tls == NULL ||
        !app->store_ops->uses_tls(app->config->store_url)) {
        return;
    }
    bool good = app->store_ops->reload_tls(app->store, &finding);
    if (finding.key_exposed) {
        config_tls_exposed(app->config, &text);
        log_event(LOG_WARN, "configuration", LOG_TEXT("text", text.text));
    }
    if (!good) {
        config_tls_problem(app->config, &finding, &text);
        log_event(LOG_ERROR, "reload-failed", LOG_TEXT("error", text.text),
                  LOG_TEXT("comment", "the TLS files that were read before stay in use"));
        return;
    }
    log_event(LOG_INFO, "reloaded", LOG_TEXT("what", "TLS files"));
}

void app_reload(struct app *app) {
    struct error error = {""};
    bool changed = false;
    if (!reload_secrets(app, &changed, &error)) {
        log_event(LOG_ERROR, "reload-failed", LOG_TEXT("error", error.text));
    } else {
        log_event(LOG_INFO, "reloaded", LOG_TEXT("what", "secrets"));
    }
    reload_tls(app);
}
