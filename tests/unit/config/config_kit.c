#include "config_kit.h"

#include "store/store.h"

#include <stdio.h>

static bool check(const char *url, struct error *error) {
    if (strstr(url, "wrong") != NULL) {
        error_set(error, "is wrong: write redis://HOST");
        return false;
    }
    return true;
}

static bool uses_tls(const char *url) {
    return strncmp(url, "rediss:", 7) == 0;
}

/* Paths say what is wrong with their files. */
static bool check_tls(const struct store_tls *tls, struct store_tls_finding *finding) {
    memset(finding, 0, sizeof *finding);
    for (int file = 0; file < STORE_TLS_FILES; file++) {
        const char *path = tls->paths[file] != NULL ? tls->paths[file] : "";
        finding->file = (enum store_tls_file)file;
        finding->key_exposed = file == STORE_TLS_KEY && strstr(path, "exposed") != NULL;
        if (strstr(path, "broken") != NULL) {
            error_set(&finding->error, "is broken: mend it");
            return false;
        }
    }
    return true;
}

static const struct store_ops redis = {
    .kind = "redis", .check = check, .uses_tls = uses_tls, .check_tls = check_tls};
static const struct store_ops postgres = {.kind = "postgres", .check = check};
static const struct store_ops local = {.kind = "local", .check = check};

const struct store_ops *store_for_url(const char *url, struct error *error) {
    if (strncmp(url, "redis:", 6) == 0 || uses_tls(url)) {
        return &redis;
    }
    if (strncmp(url, "postgres:", 9) == 0) {
        return &postgres;
    }
    if (strncmp(url, "local:", 6) == 0) {
        return &local;
    }
    error_set(error, "is no store: write redis:// or local:");
    return NULL;
}

static size_t count_of(char *const *words) {
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    return count;
}

static void load_all(struct loaded *loaded, char *const *first, char *const *arguments,
                     char *const *environment) {
    char *all[64];
    char *variables[64];
    char runtime[] = "RUNTIME_DIRECTORY=/run/test";
    size_t before = count_of(first);
    size_t count = count_of(arguments);
    size_t given = count_of(environment);
    assert_true(before + count < 64 && given < 62);
    memcpy(all, first, before * sizeof *all);
    memcpy(all + before, arguments, count * sizeof *all);
    memcpy(variables, environment, given * sizeof *variables);
    variables[given] = runtime;
    variables[given + 1] = NULL;
    loaded->result =
        config_load(&loaded->config, (int)(before + count), all, variables, &loaded->report);
}

void load(struct loaded *loaded, char *const *arguments, char *const *environment) {
    load_all(loaded, NO_WORDS, arguments, environment);
}

void load_with(struct loaded *loaded, char *const *arguments, char *const *environment) {
    load_all(loaded, WORDS("--store", "redis://h", "--election", "a"), arguments, environment);
}

void unload(struct loaded *loaded) {
    config_report_finish(&loaded->report);
    config_finish(&loaded->config);
}

void assert_good(const struct loaded *loaded) {
    for (size_t i = 0; i < loaded->report.errors.count; i++) {
        print_error("%s\n", loaded->report.errors.lines[i]);
    }
    assert_int_equal(loaded->result, CONFIG_GOOD);
    assert_int_equal(loaded->report.errors.count, 0);
}

void assert_one_error(const struct loaded *loaded, char *const *words) {
    for (size_t i = 0; loaded->report.errors.count != 1 && i < loaded->report.errors.count; i++) {
        print_error("%s\n", loaded->report.errors.lines[i]);
    }
    assert_int_equal(loaded->result, CONFIG_BAD);
    assert_int_equal(loaded->report.errors.count, 1);
    const char *line = loaded->report.errors.lines[0];
    assert_null(strchr(line, '\n'));
    for (; *words != NULL; words++) {
        if (strstr(line, *words) == NULL) {
            fail_msg("\"%s\" is not in: %s", *words, line);
        }
    }
}

bool has_line(const struct config_list *list, const char *part) {
    for (size_t i = 0; i < list->count; i++) {
        if (strstr(list->lines[i], part) != NULL) {
            return true;
        }
    }
    return false;
}
