#include "base/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static const char *problem;

void dump_keep_memory_out(void) {
    static const char only_elf_headers[] = "0x10";
    const size_t length = sizeof only_elf_headers - 1;
    int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, only_elf_headers, length) != (ssize_t)length) {
        problem = strerror(errno);
        (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

const char *dump_problem(void) {
    return problem;
}
