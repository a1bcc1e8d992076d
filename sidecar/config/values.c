#include "config/values.h"

#include "base/http_probe.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/address.h"
#include "config/duration.h"
#include "config/mask.h"
#include "config/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Below the largest token, 10^14, with room for all that follow. */
#define TOKEN_MOST UINT64_C(90000000000000)

static void *place(const struct option *option, struct config *config) {
    return (char *)config + option->target;
}

static const void *value(const struct option *option, const struct config *config) {
    return (const char *)config + option->target;
}

static void replace(char **text, const char *with) {
    memory_free_secret(*text);
    *text = memory_text(with);
}

bool take_text(const struct option *option, const char *text, struct config *config,
               struct error *error) {
    (void)error;
    replace(place(option, config), text);
    return true;
}

bool take_store(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7F) {
            error_set(error, "has a space, a line end or a control character in it: percent-encode "
                             "it (%%20 for a space) or leave it out");
            return false;
        }
    }
    return take_text(option, text, config, error);
}

bool take_name(const struct option *option, const char *text, struct config *config,
               struct error *error) {
    if (!name_is_valid(text)) {
        error_set(error, "is not a name: use " NAME_SHAPE);
        return false;
    }
    return take_text(option, text, config, error);
}

bool take_identity(const struct option *option, const char *text, struct config *config,
                   struct error *error) {
    if (strstr(text, "$(") != NULL) {
        error_set(error, "was not expanded: in Kubernetes the variable has to be defined in env, "
                         "before this one, as in valueFrom.fieldRef metadata.name");
        return false;
    }
    if (!name_is_identity(text)) {
        error_set(error, "is not an identity: use 1 to 128 printable ASCII characters without "
                         "spaces and quotes, such as the host's name");
        return false;
    }
    return take_text(option, text, config, error);
}

static bool add_name(const char *name, struct config *config, struct error *error) {
    if (!name_is_valid(name)) {
        error_set(error, "is not a list of names: each is " NAME_SHAPE);
        return false;
    }
    for (size_t i = 0; i < config->election_count; i++) {
        if (strcmp(config->elections[i], name) == 0) {
            error_set(error, "names %s a second time: name each election once", name);
            return false;
        }
    }
    if (config->election_count == ELECTIONS_MAX) {
        error_set(error, "is one too many: at most %d elections", ELECTIONS_MAX);
        return false;
    }
    config->elections =
        memory_grow(config->elections, config->election_count + 1, sizeof *config->elections);
    config->elections[config->election_count++] = memory_text(name);
    return true;
}

bool take_names(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    (void)option;
    bool good = true;
    while (good) {
        text += strspn(text, " ");
        size_t length = strcspn(text, ",");
        size_t used = length;
        while (used > 0 && text[used - 1] == ' ') {
            used--;
        }
        char *name = memory_text_part(text, used);
        good = add_name(name, config, error);
        free(name);
        text += length;
        if (*text++ == '\0') {
            break;
        }
    }
    return good;
}

bool take_time(const struct option *option, const char *text, struct config *config,
               struct error *error) {
    int64_t ns;
    const char *wrong = duration_parse(text, &ns);
    if (wrong != NULL) {
        error_set(error, "%s", wrong);
        return false;
    }
    if (ns < option->least || ns > option->most) {
        char least[DURATION_TEXT_MAX];
        char most[DURATION_TEXT_MAX];
        error_set(error, "is out of range: %s to %s",
                  duration_format(option->least, least, sizeof least),
                  duration_format(option->most, most, sizeof most));
        return false;
    }
    *(int64_t *)place(option, config) = ns;
    return true;
}

bool take_drain(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    config->drain_none = strcmp(text, "none") == 0;
    if (config->drain_none) {
        config->drain_ns = 0;
        return true;
    }
    struct error why;
    if (!take_time(option, text, config, &why)) {
        error_set(error, "%s; or none, which releases at once", why.text);
        return false;
    }
    return true;
}

bool take_time_or_off(const struct option *option, const char *text, struct config *config,
                      struct error *error) {
    struct error why;
    if (strcmp(text, "off") == 0) {
        *(int64_t *)place(option, config) = 0;
    } else if (!take_time(option, text, config, &why)) {
        error_set(error, "%s; or off", why.text);
        return false;
    }
    return true;
}

bool take_app_check(const struct option *option, const char *text, struct config *config,
                    struct error *error) {
    struct http_target target;
    if (strcmp(text, "off") == 0) {
        return true;
    }
    return http_target_parse(text, &target, error) && take_text(option, text, config, error);
}

bool take_floor(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    uint64_t number = 0;
    size_t length = strspn(text, "0123456789");
    bool good = text[length] == '\0' && length <= 15;
    for (size_t i = 0; good && i < length; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (!good || number > TOKEN_MOST) {
        error_set(error, "is not a token: a whole number from 0 to %" PRIu64, TOKEN_MOST);
        return false;
    }
    *(uint64_t *)place(option, config) = number;
    return true;
}

bool take_count(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    int64_t number = 0;
    size_t length = strspn(text, "0123456789");
    for (size_t i = 0; i < length && number <= option->most; i++) {
        number = number * 10 + (text[i] - '0');
    }
    if (text[length] != '\0' || number < option->least || number > option->most) {
        error_set(error, "is not a whole number from %" PRId64 " to %" PRId64, option->least,
                  option->most);
        return false;
    }
    *(unsigned *)place(option, config) = (unsigned)number;
    return true;
}

static bool choose(const struct option *option, const char *text, int *choice,
                   struct error *error) {
    char all[128] = "";
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *choice = i;
            return true;
        }
        size_t length = strlen(all);
        (void)snprintf(all + length, sizeof all - length, "%s%s", i > 0 ? ", " : "",
                       option->choices[i]);
    }
    error_set(error, "is none of: %s", all);
    return false;
}

bool take_switch(const struct option *option, const char *text, struct config *config,
                 struct error *error) {
    int choice;
    if (!choose(option, text, &choice, error)) {
        return false;
    }
    *(bool *)place(option, config) = choice == 1;
    return true;
}

bool take_level(const struct option *option, const char *text, struct config *config,
                struct error *error) {
    return choose(option, text, place(option, config), error);
}

bool take_address(const struct option *option, const char *text, struct config *config,
                  struct error *error) {
    if (!address_parse(text, place(option, config))) {
        error_set(error, "is not an address to listen on: write localhost:4040, 127.0.0.1:4040, "
                         "[::1]:4040, :4040 for all addresses (port 0 to 65535), or off");
        return false;
    }
    return true;
}

bool take_socket(const struct option *option, const char *text, struct config *config,
                 struct error *error) {
    config->socket_off = strcmp(text, "off") == 0;
    if (config->socket_off) {
        return true;
    }
    size_t length = strlen(text);
    if (text[0] != '/' || text[length - 1] == '/') {
        error_set(error, "is not the absolute path of a socket: write one such as "
                         "/run/gavel/gavel.sock, or off");
        return false;
    }
    if (length > SOCKET_PATH_MAX) {
        error_set(error, "is too long for a socket: at most %d bytes, this has %zu",
                  SOCKET_PATH_MAX, length);
        return false;
    }
    return take_text(option, text, config, error);
}

bool take_page_dir(const struct option *option, const char *text, struct config *config,
                   struct error *error) {
    config->page_dir_off = strcmp(text, "off") == 0;
    if (config->page_dir_off) {
        return true;
    }
    if (text[0] != '/') {
        error_set(error, "is not the absolute path of a folder: write one such as /run/gavel, or "
                         "off");
        return false;
    }
    return take_text(option, text, config, error);
}

bool take_mode(const struct option *option, const char *text, struct config *config,
               struct error *error) {
    size_t length = strspn(text, "01234567");
    unsigned mode = 0;
    for (size_t i = 0; i < length && i < 4; i++) {
        mode = mode * 8 + (unsigned)(text[i] - '0');
    }
    if (text[length] != '\0' || length < 3 || length > 4 || mode < 0600 || mode > 0777) {
        error_set(error, "is not a mode: octal from 0600 to 0777, as in 0660");
        return false;
    }
    *(unsigned *)place(option, config) = mode;
    return true;
}

void show_text(const struct option *option, const struct config *config, FILE *out) {
    const char *text = *(char *const *)value(option, config);
    for (text = text != NULL ? text : "-"; *text != '\0';) {
        char form[TEXT_ESCAPED_MAX];
        size_t length;
        text += text_escape_one(text, form, &length);
        (void)fwrite(form, 1, length, out);
    }
}

void show_secret(const struct option *option, const struct config *config, FILE *out) {
    const char *text = *(char *const *)value(option, config);
    (void)fputs(text != NULL ? "(hidden)" : "-", out);
}

void show_store(const struct option *option, const struct config *config, FILE *out) {
    (void)option;
    char *masked = mask_url(config->store_url);
    (void)fputs(masked, out);
    free(masked);
}

void show_names(const struct option *option, const struct config *config, FILE *out) {
    (void)option;
    for (size_t i = 0; i < config->election_count; i++) {
        (void)fprintf(out, "%s%s", i > 0 ? "," : "", config->elections[i]);
    }
}

void show_time(const struct option *option, const struct config *config, FILE *out) {
    char text[DURATION_TEXT_MAX];
    (void)fputs(duration_format(*(const int64_t *)value(option, config), text, sizeof text), out);
}

void show_drain(const struct option *option, const struct config *config, FILE *out) {
    if (config->drain_none) {
        (void)fputs("none", out);
    } else {
        show_time(option, config, out);
    }
}

void show_time_or_off(const struct option *option, const struct config *config, FILE *out) {
    if (*(const int64_t *)value(option, config) == 0) {
        (void)fputs("off", out);
    } else {
        show_time(option, config, out);
    }
}

void show_app_check(const struct option *option, const struct config *config, FILE *out) {
    if (config->app_check == NULL) {
        (void)fputs("off", out);
    } else {
        show_text(option, config, out);
    }
}

void show_floor(const struct option *option, const struct config *config, FILE *out) {
    (void)fprintf(out, "%" PRIu64, *(const uint64_t *)value(option, config));
}

void show_count(const struct option *option, const struct config *config, FILE *out) {
    (void)fprintf(out, "%u", *(const unsigned *)value(option, config));
}

void show_switch(const struct option *option, const struct config *config, FILE *out) {
    (void)fputs(option->choices[*(const bool *)value(option, config) ? 1 : 0], out);
}

void show_level(const struct option *option, const struct config *config, FILE *out) {
    (void)fputs(option->choices[*(const int *)value(option, config)], out);
}

void show_address(const struct option *option, const struct config *config, FILE *out) {
    char text[ADDRESS_TEXT_MAX];
    (void)fputs(address_format(value(option, config), text), out);
}

void show_socket(const struct option *option, const struct config *config, FILE *out) {
    if (config->socket_off) {
        (void)fputs("off", out);
    } else {
        show_text(option, config, out);
    }
}

void show_page_dir(const struct option *option, const struct config *config, FILE *out) {
    if (config->page_dir_off) {
        (void)fputs("off", out);
    } else {
        show_text(option, config, out);
    }
}

void show_mode(const struct option *option, const struct config *config, FILE *out) {
    (void)fprintf(out, "%04o", *(const unsigned *)value(option, config));
}
