#ifndef GAVEL_HEALTH_PROCESS_H
#define GAVEL_HEALTH_PROCESS_H

#include <stdbool.h>

/* What the kernel says of this process, in base units. From /proc/self. */
struct process_usage {
    double cpu_s;
    double resident_bytes;
    double virtual_bytes;
    double start_time_s; /* since the epoch */
    bool known;          /* the four above */
    double open_files;   /* negative: unknown */
    double max_files;    /* negative: unknown, or no limit */
};

void process_usage_read(struct process_usage *usage);

#endif
