/* Runs a fuzz target over the files that are named, or over those in the folders that are named. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;

static void replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    /* Exactly as large as the input, so that AddressSanitizer sees the first byte behind it. */
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    replayed++;
}

static void replay(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        replay_file(path);
        return;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char below[4096];
        if (entry->d_name[0] != '.') {
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            replay_file(below);
        }
    }
    (void)closedir(folder);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        replay(argv[i]);
    }
    printf("%zu inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}
