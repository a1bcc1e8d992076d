#include "trap.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const uint64_t *seed_of_schedule;
static const bool *is_expected;

static void on_trap(int number) {
    (void)number;
    char text[] = "VIOLATION in seed 00000000000000000000: the core has ended the process\n";
    uint64_t seed = *seed_of_schedule;
    for (char *digit = strchr(text, ':') - 1; *digit == '0'; digit--) {
        *digit = (char)('0' + seed % 10);
        seed /= 10;
    }
    ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(written > 0 && *is_expected ? 0 : 1);
}

void trap_watch(const uint64_t *seed, const bool *expected) {
    seed_of_schedule = seed;
    is_expected = expected;
    signal(SIGILL, on_trap);
    signal(SIGTRAP, on_trap);
}
