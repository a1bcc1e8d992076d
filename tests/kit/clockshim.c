/* Preloaded into a server: its wall clock is the true one plus an offset (microseconds) that the
 * test writes into the file named by CLOCKSHIM_FILE. CLOCK_MONOTONIC is left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_us;

__attribute__((constructor)) static void open_offset(void) {
    const char *path = getenv("CLOCKSHIM_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        offset_us = page;
}

static void shift(int64_t *seconds, int64_t *part, int64_t parts_per_us) {
    int64_t per_second = 1000000 * parts_per_us;
    int64_t sum = *part + (offset_us ? *offset_us : 0) * parts_per_us;
    int64_t carry = sum / per_second;
    if (sum % per_second < 0)
        carry--;
    *seconds += carry;
    *part = sum - carry * per_second;
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int result = (int)syscall(SYS_clock_gettime, id, out);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t seconds = out->tv_sec, part = out->tv_nsec;
        shift(&seconds, &part, 1000);
        out->tv_sec = (time_t)seconds;
        out->tv_nsec = (long)part;
    }
    return result;
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
