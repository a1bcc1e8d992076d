#include "publish/page_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Which boot, which clock and which process a page comes from. */

static bool read_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(line, (int)size, file) != NULL;
    (void)fclose(file);
    return read;
}

static int hex_value(char c) {
    const char *digits = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

static bool read_boot_id(uint64_t id[2]) {
    char line[64] = "";
    unsigned char bytes[16] = {0};
    size_t digits = 0;
    bool read = read_line("/proc/sys/kernel/random/boot_id", line, sizeof line);
    for (const char *at = line; read && *at != '\0' && digits < 32; at++) {
        int value = hex_value(*at);
        if (value >= 0) {
            bytes[digits / 2] = (unsigned char)(bytes[digits / 2] << 4 | value);
            digits++;
        }
    }
    memcpy(id, bytes, sizeof bytes);
    return digits == 32;
}

/* Field 22 of /proc/self/stat; the second may hold anything, in parentheses. */
static uint64_t read_start(void) {
    char line[1024] = "";
    (void)read_line("/proc/self/stat", line, sizeof line);
    const char *at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

bool page_origin_read(struct page_origin *origin, struct error *error) {
    *origin = (struct page_origin){.writer = (uint64_t)getpid(), .writer_start = read_start()};
    if (!read_boot_id(origin->boot_id)) {
        error_set(error,
                  "--page-dir: /proc/sys/kernel/random/boot_id cannot be read, and readers "
                  "could not tell a page from before a reboot: mount /proc, or --page-dir off");
        return false;
    }
    struct stat found;
    if (stat("/proc/self/ns/time", &found) == 0) {
        origin->time_namespace = found.st_ino;
    } else if (errno != ENOENT) { /* a kernel without time namespaces has none */
        error_set(error, "--page-dir: /proc/self/ns/time: %s; give --page-dir off",
                  strerror(errno));
        return false;
    }
    return true;
}
