#include "base/memory.h"
#include "base/text.h"
#include "config/check.h"
#include "config/config.h"
#include "config/mask.h"
#include "config/nearest.h"
#include "config/options.h"
#include "config/report.h"
#include "config/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 240 /* of a value in an error's text */
#define KEY_BYTES 80

enum level { LEVEL_NONE, LEVEL_FLAGS, LEVEL_ENVIRONMENT };

struct loader {
    struct config *config;
    struct config_report *report;
    enum level levels[OPTION_COUNT]; /* where the value in force comes from */
};

/* One occurrence of an option. */
struct given {
    size_t id;
    bool file; /* the value is the path of a file that holds it */
    enum level level;
    const char *key;
    const char *value;
};

/* A value as it may be shown: quoted, bounded, without secrets. Heap. */
static char *show_given(const struct given *given) {
    const struct option *option = &options[given->id];
    if (option->secret && !given->file) {
        return memory_text("(hidden)");
    }
    char quoted[SHOWN_BYTES];
    if (given->id == OPTION_STORE && !given->file) {
        char *masked = mask_url(given->value);
        (void)text_quote(masked, quoted, sizeof quoted);
        free(masked);
    } else {
        (void)text_quote(given->value, quoted, sizeof quoted);
    }
    return memory_text(quoted);
}

static void setting_finish(struct config_setting *setting) {
    free(setting->key);
    free(setting->file);
    free(setting->shown);
}

static void remember(struct loader *loader, const struct given *given) {
    struct config_setting *setting = &loader->config->settings[given->id];
    setting_finish(setting);
    setting->key = memory_text(given->key);
    setting->file = given->file ? memory_text(given->value) : NULL;
    setting->shown = show_given(given);
    loader->levels[given->id] = given->level;
}

/* A file that is read again at run time is kept in mind. */
static void keep_file(struct config *config, const struct given *given) {
    if (given->id == OPTION_STORE_USER) {
        config->store_user_file = memory_text(given->value);
    } else if (given->id == OPTION_STORE_PASSWORD) {
        config->store_password_file = memory_text(given->value);
    }
}

static bool take(struct loader *loader, const struct given *given, struct error *error) {
    const struct option *option = &options[given->id];
    if (!given->file) {
        return option->take(option, given->value, loader->config, error);
    }
    char *text = secret_read(given->value, error);
    if (text == NULL) {
        return false;
    }
    bool good = option->take(option, text, loader->config, error);
    memory_free_secret(text);
    keep_file(loader->config, given);
    return good;
}

static bool is_given_twice(struct loader *loader, const struct given *given) {
    const struct option *option = &options[given->id];
    struct config_setting *setting = &loader->config->settings[given->id];
    if (loader->levels[given->id] != given->level || option->repeatable) {
        return false;
    }
    char *shown = show_given(given);
    if (given->file != (setting->file != NULL)) {
        report_error(loader->report, given->key, shown, "%s is given too: give one of them",
                     setting->key);
    } else {
        report_error(loader->report, given->key, shown,
                     "is given twice, before as %s %s: give it "
                     "once",
                     setting->key, setting->shown);
    }
    free(shown);
    setting->bad = true;
    return true;
}

static void give(struct loader *loader, const struct given *given) {
    struct config_setting *setting = &loader->config->settings[given->id];
    enum level before = loader->levels[given->id];
    if ((before != LEVEL_NONE && before < given->level) || is_given_twice(loader, given)) {
        return;
    }
    remember(loader, given);
    struct error error;
    if (given->value[0] == '\0') {
        report_error(loader->report, given->key, "\"\"", "is empty: give %s, or leave it out",
                     given->file ? "the path of a file" : options[given->id].value);
    } else if (!take(loader, given, &error)) {
        report_error(loader->report, given->key, setting->shown, "%s", error.text);
    } else {
        return;
    }
    setting->bad = true;
}

/* The option of that name, without dashes; `file` when it is its "-file" twin. */
static bool find_option(const char *name, size_t length, size_t *id, bool *file) {
    static const char suffix[] = "-file";
    for (*id = 0; *id < OPTION_COUNT; (*id)++) {
        const struct option *option = &options[*id];
        const char *names[] = {option->name, option->old_name};
        for (size_t i = 0; i < 2 && names[i] != NULL; i++) {
            size_t size = strlen(names[i]);
            *file = option->file_twin && i == 0 && length == size + sizeof suffix - 1 &&
                    memcmp(name + size, suffix, sizeof suffix - 1) == 0;
            if ((length == size || *file) && memcmp(name, names[i], size) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool looks_like_flag(const char *argument) {
    return argument != NULL && argument[0] == '-' && argument[1] == '-';
}

static void unknown_flag(struct loader *loader, const char *argument, size_t length) {
    char quoted[KEY_BYTES];
    char *name = memory_text_part(argument, length);
    (void)text_quote(name, quoted, sizeof quoted);
    const char *nearest = name[1] == '-' ? nearest_option(name + 2) : NULL;
    if (nearest != NULL) {
        report_usage(loader->report, "unknown option %s; did you mean --%s?", quoted, nearest);
    } else {
        report_usage(loader->report, "unknown option %s; --help lists them", quoted);
    }
    free(name);
}

/* A secret in argv can be read by everybody on the host. */
static void refuse_secret(struct loader *loader, const struct option *option) {
    char variable[OPTION_VARIABLE_MAX];
    (void)option_variable(option->name, variable);
    report_usage(loader->report,
                 "--%s: a secret does not belong on the command line, where everybody can read it: "
                 "use --%s-file PATH, %s or %s_FILE",
                 option->name, option->name, variable, variable);
}

/* Takes the flag at argv[at]; returns how many arguments it used. */
static int take_flag(struct loader *loader, int argc, char *const *argv, int at) {
    const char *argument = argv[at];
    size_t length = strcspn(argument, "=");
    const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
    int used = 1;
    if (value == NULL && at + 1 < argc && !looks_like_flag(argv[at + 1])) {
        value = argv[at + 1]; /* "-5s" is a value, if a bad one */
        used = 2;
    }
    struct given given = {.level = LEVEL_FLAGS, .value = value};
    if (argument[1] != '-' || !find_option(argument + 2, length - 2, &given.id, &given.file)) {
        unknown_flag(loader, argument, length);
        return used;
    }
    const struct option *option = &options[given.id];
    char *key = memory_text_part(argument, length);
    given.key = key;
    if (option->secret && !given.file) {
        refuse_secret(loader, option);
        loader->config->settings[given.id].bad = true;
    } else if (value == NULL && option->flag) {
        given.value = "true";
        give(loader, &given);
    } else if (value == NULL) {
        report_usage(loader->report, "%s: the value is missing: write %s %s", key, key,
                     given.file ? "PATH" : option->value);
        loader->config->settings[given.id].bad = true;
    } else {
        give(loader, &given);
    }
    free(key);
    return used;
}

static bool take_flags(struct loader *loader, int argc, char *const *argv) {
    for (int at = 0; at < argc;) {
        const char *argument = argv[at];
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            return false;
        }
        if (argument[0] == '-' && argument[1] != '\0' && strcmp(argument, "--") != 0) {
            at += take_flag(loader, argc, argv, at);
            continue;
        }
        char quoted[KEY_BYTES];
        char *masked = mask_url(argument);
        report_usage(loader->report, "unexpected argument %s: every setting is an option",
                     text_quote(masked, quoted, sizeof quoted));
        free(masked);
        at++;
    }
    return true;
}

static void unknown_variable(struct loader *loader, const char *name) {
    char quoted[KEY_BYTES];
    (void)text_quote(name, quoted, sizeof quoted);
    const char *nearest = nearest_variable(name);
    if (nearest != NULL) {
        char variable[OPTION_VARIABLE_MAX];
        report_warning(loader->report,
                       "%s: there is no such setting, it is ignored; did you mean "
                       "%s?",
                       quoted, option_variable(nearest, variable));
    } else {
        report_warning(loader->report,
                       "%s: there is no such setting, it is ignored (Kubernetes sets such "
                       "variables for a Service whose name begins with gavel)",
                       quoted);
    }
}

/* "GAVEL_STORE_FILE" to "store-file"; false when that is not how variables are written. */
static bool option_name(const char *variable, char name[OPTION_VARIABLE_MAX]) {
    size_t length = 0;
    for (const char *at = variable + strlen("GAVEL_"); *at != '\0'; at++) {
        bool good = (*at >= 'A' && *at <= 'Z') || *at == '_';
        if (!good || length + 1 == OPTION_VARIABLE_MAX) {
            return false;
        }
        name[length++] = (char)(*at == '_' ? '-' : *at - 'A' + 'a');
    }
    name[length] = '\0';
    return true;
}

static void take_variable(struct loader *loader, const char *entry) {
    size_t length = strcspn(entry, "=");
    char *variable = memory_text_part(entry, length);
    char name[OPTION_VARIABLE_MAX];
    struct given given = {.level = LEVEL_ENVIRONMENT, .key = variable};
    if (entry[length] == '=' && option_name(variable, name) &&
        find_option(name, strlen(name), &given.id, &given.file)) {
        given.value = entry + length + 1;
        give(loader, &given);
    } else {
        unknown_variable(loader, variable);
    }
    free(variable);
}

static void take_defaults(struct loader *loader) {
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        const struct option *option = &options[id];
        struct config_setting *setting = &loader->config->settings[id];
        if (loader->levels[id] != LEVEL_NONE) {
            continue;
        }
        struct error error;
        if (option->standard != NULL && !option->computed &&
            !option->take(option, option->standard, loader->config, &error)) {
            abort(); /* the table is wrong */
        }
        if (option->required && !setting->bad) {
            char key[KEY_BYTES];
            char variable[OPTION_VARIABLE_MAX];
            (void)snprintf(key, sizeof key, "--%s", option->name);
            report_error(loader->report, key, NULL, "is required: give --%s %s or %s", option->name,
                         option->value, option_variable(option->name, variable));
            setting->bad = true;
        }
    }
}

enum config_result config_load(struct config *config, int argc, char *const *argv,
                               char *const *environment, struct config_report *report) {
    memset(config, 0, sizeof *config);
    memset(report, 0, sizeof *report);
    config->settings = memory_zeroed(OPTION_COUNT, sizeof *config->settings);
    struct loader loader = {.config = config, .report = report};
    if (!take_flags(&loader, argc, argv)) {
        return CONFIG_HELP;
    }
    for (char *const *entry = environment; *entry != NULL; entry++) {
        if (strncmp(*entry, "GAVEL_", strlen("GAVEL_")) == 0) {
            take_variable(&loader, *entry);
        }
    }
    take_defaults(&loader);
    config_check(config, environment, report);
    return report->errors.count == 0 ? CONFIG_GOOD : CONFIG_BAD;
}

void config_finish(struct config *config) {
    for (size_t i = 0; config->settings != NULL && i < OPTION_COUNT; i++) {
        setting_finish(&config->settings[i]);
    }
    free(config->settings);
    for (size_t i = 0; i < config->election_count; i++) {
        free(config->elections[i]);
    }
    free(config->elections);
    memory_free_secret(config->store_url);
    free(config->namespace_);
    free(config->identity);
    free(config->socket_path);
    free(config->page_dir);
    free(config->app_check);
    free(config->pg_schema);
    free(config->pg_sequence);
    memory_free_secret(config->store_user);
    memory_free_secret(config->store_password);
    free(config->store_user_file);
    free(config->store_password_file);
    free(config->tls_ca);
    free(config->tls_cert);
    free(config->tls_key);
    memset(config, 0, sizeof *config);
}
