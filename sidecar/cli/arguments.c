#include "cli/arguments.h"

#include "base/text.h"
#include "cli/cli.h"
#include "config/duration.h"
#include "config/names.h"
#include "config/runtime_dir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_TIMEOUT_NS INT64_C(1000000)
#define MOST_TIMEOUT_NS (INT64_C(24) * 3600 * 1000000000)

struct parser {
    struct arguments *arguments;
    const char *socket;
    const char *socket_key;
    bool seen_socket, seen_timeout, seen_for, seen_name;
    bool wrong;
};

static void complain(struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(struct parser *parser, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)fprintf(stderr, "%s %s: %s\n", cli_program(), parser->arguments->command, text);
    parser->wrong = true;
}

static void print_help(const struct arguments *arguments) {
    char timeout[DURATION_TEXT_MAX];
    (void)printf("usage: %s %s %s [OPTIONS]\n\n%s\n\n"
                 "  --socket PATH   the sidecar's socket; else $GAVEL_SOCKET, else gavel.sock in "
                 "the runtime\n                  directory ($RUNTIME_DIRECTORY, /run/gavel, "
                 "$XDG_RUNTIME_DIR/gavel)\n"
                 "  --timeout TIME  default %s\n",
                 cli_program(), arguments->command, arguments->synopsis, arguments->help,
                 duration_format(arguments->timeout_ns, timeout, sizeof timeout));
}

static void take_timeout(struct parser *parser, const char *value) {
    char quoted[80];
    int64_t ns = 0;
    const char *wrong = duration_parse(value, &ns);
    if (wrong == NULL && (ns < LEAST_TIMEOUT_NS || ns > MOST_TIMEOUT_NS)) {
        wrong = "is out of range: 1ms to 24h";
    }
    if (wrong != NULL) {
        complain(parser, "--timeout %s: %s", text_quote(value, quoted, sizeof quoted), wrong);
        return;
    }
    parser->arguments->timeout_ns = ns;
}

static void take_for(struct parser *parser, const char *value) {
    char quoted[80];
    parser->arguments->ready = strcmp(value, "ready") == 0;
    if (!parser->arguments->ready && strcmp(value, "leader") != 0) {
        complain(parser, "--for %s: is neither leader nor ready",
                 text_quote(value, quoted, sizeof quoted));
    }
}

static void take_name(struct parser *parser, const char *name) {
    char quoted[80];
    (void)text_quote(name, quoted, sizeof quoted);
    if (!name_is_valid(name)) {
        complain(parser, "%s: is not an election's name: " NAME_SHAPE, quoted);
    } else if (parser->seen_name) {
        complain(parser, "%s: only one election's name, please", quoted);
    }
    parser->arguments->name = name;
    parser->seen_name = true;
}

static void take_value(struct parser *parser, const char *option, const char *value, bool *seen) {
    if (*seen) {
        complain(parser, "%s is given twice", option);
    } else if (value[0] == '\0') {
        complain(parser, "%s \"\": is empty", option);
    } else if (seen == &parser->seen_socket) {
        parser->socket = value;
        parser->socket_key = "--socket";
    } else if (seen == &parser->seen_timeout) {
        take_timeout(parser, value);
    } else {
        take_for(parser, value);
    }
    *seen = true;
}

static bool *option_seen(struct parser *parser, const char *argument, size_t length) {
    static const char socket[] = "--socket";
    static const char timeout[] = "--timeout";
    static const char wait_for[] = "--for";
    if (length == sizeof socket - 1 && strncmp(argument, socket, length) == 0) {
        return &parser->seen_socket;
    }
    if (length == sizeof timeout - 1 && strncmp(argument, timeout, length) == 0) {
        return &parser->seen_timeout;
    }
    if (parser->arguments->takes_for && length == sizeof wait_for - 1 &&
        strncmp(argument, wait_for, length) == 0) {
        return &parser->seen_for;
    }
    return NULL;
}

/* Returns how many arguments it used. */
static int take_option(struct parser *parser, int argc, char **argv, int at) {
    const char *argument = argv[at];
    size_t length = strcspn(argument, "=");
    char quoted[80];
    if (parser->arguments->takes_json && strcmp(argument, "--json") == 0) {
        parser->arguments->json = true;
        return 1;
    }
    if (parser->arguments->takes_once && strcmp(argument, "--once") == 0) {
        parser->arguments->once = true;
        return 1;
    }
    bool *seen = option_seen(parser, argument, length);
    if (seen == NULL) {
        complain(parser, "unknown option %s", text_quote(argument, quoted, sizeof quoted));
        return 1;
    }
    char option[16];
    (void)snprintf(option, sizeof option, "%.*s", (int)length, argument);
    if (argument[length] == '=') {
        take_value(parser, option, argument + length + 1, seen);
        return 1;
    }
    if (at + 1 == argc || strncmp(argv[at + 1], "--", 2) == 0) {
        complain(parser, "%s: the value is missing", option);
        return 1;
    }
    take_value(parser, option, argv[at + 1], seen);
    return 2;
}

/* The socket: the option, the variable, the rule that the sidecar follows too. */
static void find_socket(struct parser *parser) {
    struct arguments *arguments = parser->arguments;
    const char *path = parser->socket;
    if (path == NULL && !parser->seen_socket) {
        path = getenv("GAVEL_SOCKET");
        parser->socket_key = "GAVEL_SOCKET";
    }
    if (path == NULL) {
        struct runtime_places places = {
            .runtime_directory = getenv("RUNTIME_DIRECTORY"),
            .system_directory = RUNTIME_SYSTEM_DIRECTORY,
            .user_directory = getenv("XDG_RUNTIME_DIR"),
        };
        if (!parser->wrong &&
            !runtime_socket(&places, RUNTIME_CLIENT, arguments->socket, sizeof arguments->socket)) {
            complain(parser, "there is no runtime directory: give --socket PATH or GAVEL_SOCKET");
        }
        return;
    }
    char quoted[160];
    (void)text_quote(path, quoted, sizeof quoted);
    if (strcmp(path, "off") == 0) {
        complain(parser, "%s is off: without a socket the sidecar cannot be asked here",
                 parser->socket_key);
    } else if (path[0] != '/') {
        complain(parser, "%s %s: is not an absolute path", parser->socket_key, quoted);
    } else if (strlen(path) >= sizeof arguments->socket) {
        complain(parser, "%s %s: is too long for a socket: at most %d bytes", parser->socket_key,
                 quoted, SOCKET_PATH_BYTES - 1);
    } else {
        (void)snprintf(arguments->socket, sizeof arguments->socket, "%s", path);
    }
}

bool arguments_parse(struct arguments *arguments, int argc, char **argv, int *status) {
    struct parser parser = {.arguments = arguments};
    arguments->name = "";
    for (int at = 0; at < argc;) {
        if (arguments->takes_command && strcmp(argv[at], "--") == 0) {
            arguments->rest = argv + at + 1;
            break;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            print_help(arguments);
            *status = 0;
            return false;
        }
        if (argv[at][0] == '-' && argv[at][1] != '\0') {
            at += take_option(&parser, argc, argv, at);
        } else {
            take_name(&parser, argv[at++]);
        }
    }
    if (arguments->takes_command && (arguments->rest == NULL || arguments->rest[0] == NULL)) {
        complain(&parser, "the command is missing: write -- CMD... at the end");
    }
    find_socket(&parser);
    if (parser.wrong) {
        (void)fprintf(stderr, "%s %s --help tells how it is used\n", cli_program(),
                      arguments->command);
        *status = EXIT_USAGE;
    }
    return !parser.wrong;
}
