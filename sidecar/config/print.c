#include "config/config.h"
#include "config/options.h"

#include <string.h>

void config_print(const struct config *config, FILE *out) {
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        const struct option *option = &options[id];
        const struct config_setting *setting = &config->settings[id];
        (void)fprintf(out, "%-17s ", option->name);
        option->show(option, config, out);
        (void)fprintf(out, "  (%s%s%s)\n", setting->key != NULL ? setting->key : "default",
                      setting->file != NULL ? " " : "", setting->file != NULL ? setting->file : "");
    }
}

/* Words, broken into lines that begin at column `indent`. */
static void print_wrapped(FILE *out, const char *text, int indent) {
    const int width = 96;
    int column = indent;
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > width) {
            (void)fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

/* Behind the help: what stands where nothing is given. */
static void print_option(const struct option *option, FILE *out) {
    const int indent = 26;
    char standard[128] = "";
    char old[64] = "";
    char text[512];
    if (option->standard != NULL) {
        (void)snprintf(standard, sizeof standard, " (default: %s)", option->standard);
    }
    if (option->old_name != NULL) {
        (void)snprintf(old, sizeof old, "; also --%s", option->old_name);
    }
    (void)snprintf(text, sizeof text, "%s%s%s%s", option->help, old,
                   option->required ? " (required)" : "", standard);
    int used = option->secret ? fprintf(out, "  --%s-file PATH", option->name)
                              : fprintf(out, "  --%s %s", option->name, option->value);
    if (used + 1 >= indent) {
        (void)fputc('\n', out);
        used = 0;
    }
    (void)fprintf(out, "%*s", indent - used, "");
    print_wrapped(out, text, indent);
}

void config_print_help(FILE *out) {
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        print_option(&options[id], out);
    }
    (void)fputs("\nEvery option has a twin in the environment (--store-user: GAVEL_STORE_USER), "
                "which it overrides.\n--store, --store-user and the password can be read from a "
                "file as well: --store-file PATH or\nGAVEL_STORE_FILE, and so on. Times are "
                "written 300ms, 1.5s, 2m, 1h.\n",
                out);
}

/* A bar would end the cell. */
static void print_cell(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        (void)fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
    }
}

void config_print_table(FILE *out) {
    (void)fputs("| option | environment | default | meaning |\n|---|---|---|---|\n", out);
    for (size_t id = 0; id < OPTION_COUNT; id++) {
        const struct option *option = &options[id];
        char variable[OPTION_VARIABLE_MAX];
        (void)option_variable(option->name, variable);
        (void)fputs("| ", out);
        if (!option->secret) {
            (void)fprintf(out, "`--%s ", option->name);
            print_cell(out, option->value);
            (void)fputs("`", out);
        }
        if (option->file_twin) {
            (void)fprintf(out, "%s`--%s-file PATH`", option->secret ? "" : " ", option->name);
        }
        if (option->old_name != NULL) {
            (void)fprintf(out, " (old: `--%s`)", option->old_name);
        }
        (void)fprintf(out, " | `%s`", variable);
        if (option->file_twin) {
            (void)fprintf(out, " `%s_FILE`", variable);
        }
        (void)fprintf(out, " | %s | ",
                      option->required ? "required"
                                       : (option->standard != NULL ? option->standard : ""));
        print_cell(out, option->help);
        (void)fputs(" |\n", out);
    }
}
