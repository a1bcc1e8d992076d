#include "cli/cli.h"

#include "config/names.h"
#include "config/options.h"
#include "store/postgres/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_CONFIG 78 /* EX_CONFIG of sysexits.h */

static const char usage[] =
    "usage: gavel key [--namespace NAME] NAME...\n\n"
    "Prints the PostgreSQL advisory lock's key of each election, a signed 64-bit number: the first "
    "8\nbytes of SHA-256 over NAMESPACE/NAME. The namespace may come from GAVEL_NAMESPACE, as for "
    "`gavel\nrun`. Exit: 0, 64 wrong command line, 78 wrong environment.\n";

static int refuse(const char *key, const char *what) {
    (void)fprintf(stderr, "gavel key: %s%s%s\n%s", key, key[0] != '\0' ? " " : "", what, usage);
    return EXIT_USAGE;
}

/* The value of the flag of that name at argv[*at], which it moves on to its last part. NULL: it is
 * another argument; "": there is no value. */
static const char *flag_value(const char *name, int argc, char **argv, int *at) {
    const char *given = argv[*at];
    size_t length = strlen(name);
    if (strncmp(given, "--", 2) != 0 || strncmp(given + 2, name, length) != 0) {
        return NULL;
    }
    given += 2 + length;
    if (*given == '=') {
        return given + 1;
    }
    if (*given != '\0') {
        return NULL;
    }
    return *at + 1 < argc ? argv[++*at] : "";
}

/* The namespace of this process' environment; NULL: none is given. False: it is wrong. */
static bool read_environment(const char **namespace_) {
    const struct option *option = &options[OPTION_NAMESPACE];
    const char *names[] = {option->name, option->old_name};
    for (size_t i = 0; i < 2; i++) {
        char variable[OPTION_VARIABLE_MAX];
        const char *value = getenv(option_variable(names[i], variable));
        if (value == NULL) {
            continue;
        }
        if (*namespace_ != NULL || !name_is_valid(value)) {
            (void)fprintf(stderr, "gavel key: %s %s\n", variable,
                          *namespace_ != NULL ? "is given under its old name too: give it once"
                                              : "is not a name: use " NAME_SHAPE);
            return false;
        }
        *namespace_ = value;
    }
    return true;
}

/* The status to end with; 0: go on. Leaves the elections' names in argv. */
static int parse(int argc, char **argv, const char **namespace_, int *count) {
    const struct option *option = &options[OPTION_NAMESPACE];
    bool only_names = false;
    for (int i = 0; i < argc; i++) {
        const char *key = argv[i];
        if (only_names || strncmp(key, "--", 2) != 0) {
            argv[(*count)++] = argv[i];
            continue;
        }
        if (key[2] == '\0') {
            only_names = true;
            continue;
        }
        const char *value = flag_value(option->name, argc, argv, &i);
        value = value != NULL ? value : flag_value(option->old_name, argc, argv, &i);
        if (value == NULL) {
            return refuse(key, "is no option here");
        }
        if (*namespace_ != NULL) {
            return refuse(key, "is given twice: give it once");
        }
        if (!name_is_valid(value)) {
            return refuse(key, "is not a name: use " NAME_SHAPE);
        }
        *namespace_ = value;
    }
    return 0;
}

int cli_key(int argc, char **argv) {
    const char *namespace_ = NULL;
    int count = 0;
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    int status = parse(argc, argv, &namespace_, &count);
    if (status != 0) {
        return status;
    }
    if (namespace_ == NULL && !read_environment(&namespace_)) {
        return EXIT_CONFIG;
    }
    if (count == 0) {
        return refuse("", "name an election");
    }
    for (int i = 0; i < count; i++) {
        if (!name_is_valid(argv[i])) {
            return refuse("", "an election's name is " NAME_SHAPE);
        }
    }
    for (int i = 0; i < count; i++) {
        const char *in = namespace_ != NULL ? namespace_ : options[OPTION_NAMESPACE].standard;
        (void)printf("%s\n", pg_key_make(NULL, in, argv[i]).text);
    }
    return 0;
}
