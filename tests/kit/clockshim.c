/* Preloaded into a program: each of its clocks is the true one moved by what the test writes into
 * the file named by CLOCKSHIM_FILE, `anchor + (true - anchor) * rate + offset`. The file has two
 * tables; the test fills the one that is not in use, then switches. Only raw system calls here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define RATE_ONE 1000000

struct moved {
    int64_t anchor_ns;
    int64_t offset_ns;
    int64_t rate_ppm;
};

enum clock { REAL, MONOTONIC, BOOT, CLOCKS };

struct page {
    int64_t in_use; /* which table */
    struct moved tables[2][CLOCKS];
};

static const struct page *page;

__attribute__((constructor)) static void open_page(void) {
    const char *path = getenv("CLOCKSHIM_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        page = mapped;
}

static int index_of(clockid_t id) {
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return REAL;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        return MONOTONIC;
    case CLOCK_BOOTTIME:
        return BOOT;
    default:
        return -1;
    }
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int result = (int)syscall(SYS_clock_gettime, id, out);
    int index = index_of(id);
    if (result != 0 || index < 0 || !page)
        return result;
    int64_t in_use = __atomic_load_n(&page->in_use, __ATOMIC_ACQUIRE);
    const struct moved *moved = &page->tables[in_use & 1][index];
    int64_t since_ns = out->tv_sec * NS_PER_S + out->tv_nsec - moved->anchor_ns;
    if (moved->rate_ppm != RATE_ONE)
        since_ns = (int64_t)((__int128)since_ns * moved->rate_ppm / RATE_ONE);
    int64_t ns = moved->anchor_ns + since_ns + moved->offset_ns;
    out->tv_sec = (time_t)(ns / NS_PER_S);
    out->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
