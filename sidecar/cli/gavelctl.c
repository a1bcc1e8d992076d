#include "cli/cli.h"

#include <stddef.h>

int main(int argc, char **argv) {
    return cli_main("gavelctl", "", NULL, argc, argv);
}
