/* Flags and environment of `run`, a word a line; from the first empty line on the environment. What
 * is accepted is within its bounds and contradicts nothing, is shown without its secrets, and what
 * is refused says why. URLs of all stores are checked on the way. */
#include "config/config.h"

#include "election/quorum.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MOST 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_accepted(const struct config *config) {
    require(config->store_url != NULL && config->store_url[0] != '\0');
    require(config->election_count >= 1 && config->election_count <= ELECTIONS_MAX);
    require(config->ttl_ns >= 300 * NS_PER_MS && config->ttl_ns <= 3600 * NS_PER_S);
    require(config->margin_ns >= 50 * NS_PER_MS && config->margin_ns < config->ttl_ns);
    require(config->efficiency || config->margin_ns >= config->ttl_ns / 10);
    require(config->wait_ns >= config->ttl_ns);
    require(config->valid_for_ns > 0 && config->drain_ns >= 0);
    require(config->socket_off || strlen(config->socket_path) <= SOCKET_PATH_MAX);
    require((config->socket_mode & ~0777U) == 0);
}

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

/* Neither what `gavel config` shows nor an error has a password in it, if it is nothing else. */
static void check_hidden(const struct config *config, const struct config_report *report, bool good,
                         const char *input) {
    const char *password = config->store_password;
    if (password == NULL || strlen(password) < 8 || count_of(input, password) != 1) {
        return;
    }
    for (size_t i = 0; i < report->errors.count; i++) {
        require(strstr(report->errors.lines[i], password) == NULL);
    }
    if (good) {
        char *shown = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&shown, &length);
        require(out != NULL);
        config_print(config, out);
        (void)fclose(out);
        require(strstr(shown, password) == NULL);
        free(shown);
    }
}

static void check(int argc, char **argv, char **environment, const char *input) {
    struct config config;
    struct config_report report;
    enum config_result result = config_load(&config, argc, argv, environment, &report);
    require((result == CONFIG_BAD) == (report.errors.count > 0) || result == CONFIG_HELP);
    for (size_t i = 0; i < report.errors.count; i++) {
        require(report.errors.lines[i][0] != '\0');
    }
    if (result == CONFIG_GOOD) {
        check_accepted(&config);
    }
    check_hidden(&config, &report, result == CONFIG_GOOD, input);
    config_finish(&config);
    config_report_finish(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *argv[WORDS_MOST + 1];
    char *environment[WORDS_MOST + 1];
    int counts[2] = {0, 0};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    bool variables = false;
    char *rest = text;
    while (rest != NULL && counts[variables ? 1 : 0] < WORDS_MOST) {
        char *word = strsep(&rest, "\n");
        if (word[0] == '\0' && !variables) {
            variables = true;
        } else if (variables) {
            environment[counts[1]++] = word;
        } else {
            argv[counts[0]++] = word;
        }
    }
    argv[counts[0]] = NULL;
    environment[counts[1]] = NULL;
    char *input = malloc(size + 1);
    require(input != NULL);
    memcpy(input, data, size);
    input[size] = '\0';
    check(counts[0], argv, environment, input);
    free(input);
    free(text);
    return 0;
}
