#include "cli/cli.h"

#include "config/names.h"
#include "store/postgres/key.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: gavel key [--namespace NAME] NAME...\n\n"
    "Prints the PostgreSQL advisory lock's key of each election, a signed 64-bit number: the first "
    "8\nbytes of SHA-256 over NAMESPACE/NAME. Exit: 0, 64 wrong command line.\n";

static int refuse(const char *what) {
    (void)fprintf(stderr, "gavel key: %s\n%s", what, usage);
    return EXIT_USAGE;
}

int cli_key(int argc, char **argv) {
    static const char flag[] = "--namespace";
    const char *namespace_ = "default";
    int first = 0;
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (argc > 0 && strncmp(argv[0], "--namespace=", sizeof flag) == 0) {
        namespace_ = argv[0] + sizeof flag;
        first = 1;
    } else if (argc > 1 && strcmp(argv[0], flag) == 0) {
        namespace_ = argv[1];
        first = 2;
    }
    if (first >= argc) {
        return refuse("name an election");
    }
    if (!name_is_valid(namespace_)) {
        return refuse("the namespace is not a name: use " NAME_SHAPE);
    }
    for (int i = first; i < argc; i++) {
        if (!name_is_valid(argv[i])) {
            return refuse("an election's name is " NAME_SHAPE);
        }
    }
    for (int i = first; i < argc; i++) {
        (void)printf("%s\n", pg_key_make(NULL, namespace_, argv[i]).text);
    }
    return 0;
}
