#include "health/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* When the host was started; 0: unknown. */
static double boot_time_s(void) {
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL) {
        return 0;
    }
    char line[256];
    double boot_s = 0;
    while (boot_s <= 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "btime ", 6) == 0) {
            boot_s = (double)strtoull(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    return boot_s;
}

/* Numbers of the fields in proc(5)'s /proc/PID/stat. */
enum {
    FIELD_STATE = 3,
    FIELD_UTIME = 14,
    FIELD_STIME = 15,
    FIELD_START = 22,
    FIELD_VIRTUAL = 23,
    FIELD_RESIDENT = 24
};

/* The name in field 2 may hold anything, spaces and brackets too: fields count from its end. */
static bool parse_stat(const char *text, double fields[FIELD_RESIDENT + 1]) {
    const char *next = strrchr(text, ')');
    for (int field = FIELD_STATE; field <= FIELD_RESIDENT && next != NULL; field++) {
        next = strchr(next, ' ');
        if (next != NULL) {
            fields[field] = (double)strtoull(++next, NULL, 10);
        }
    }
    return next != NULL;
}

static bool convert_stat(const char *text, struct process_usage *usage) {
    double fields[FIELD_RESIDENT + 1] = {0};
    if (!parse_stat(text, fields)) {
        return false;
    }
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    usage->cpu_s = (fields[FIELD_UTIME] + fields[FIELD_STIME]) / ticks_per_s;
    usage->virtual_bytes = fields[FIELD_VIRTUAL];
    usage->resident_bytes = fields[FIELD_RESIDENT] * (double)sysconf(_SC_PAGESIZE);
    static double boot_s; /* read once: it moves a little with each step of the clock */
    if (boot_s <= 0) {
        boot_s = boot_time_s();
    }
    usage->start_time_s = boot_s + fields[FIELD_START] / ticks_per_s;
    return boot_s > 0;
}

static bool read_stat(struct process_usage *usage) {
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL) {
        return false;
    }
    char text[1024];
    bool known = fgets(text, sizeof text, file) != NULL && convert_stat(text, usage);
    (void)fclose(file);
    return known;
}

static double count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return -1;
    }
    double count = -1; /* the folder itself */
    for (const struct dirent *file; (file = readdir(folder)) != NULL;) {
        count += file->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

void process_usage_read(struct process_usage *usage) {
    *usage = (struct process_usage){.max_files = -1};
    usage->known = read_stat(usage);
    usage->open_files = count_files();
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        usage->max_files = (double)files.rlim_cur;
    }
}
