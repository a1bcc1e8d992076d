/*
 * The simulator: seeded schedules of hosts, clocks, processes, a network, a store and readers, in
 * virtual time, around the election core as it is shipped.
 *
 *   sim --seed N [--trace]             one schedule
 *   sim --seeds FROM COUNT             many, until the first violation
 *   sim ... --mutant NAME              with a fault planted; --mutants lists them
 *   sim ... --expect-violation         0 when a violation is found, 1 when none is
 *
 * Exit: 0 nothing wrong, 1 a violation (printed with its seed), 64 usage.
 */
#include "mutants.h"
#include "world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 64

struct options {
    uint64_t from;
    uint64_t count;
    bool trace;
    bool expect_violation;
};

static struct world world;
static bool expect_trap;

/* The core ends the process where it would change its state against the table. */
static void on_trap(int number) {
    (void)number;
    char text[] = "VIOLATION in seed 00000000000000000000: the core has ended the process\n";
    uint64_t seed = world.seed;
    for (char *digit = strchr(text, ':') - 1; *digit == '0'; digit--) {
        *digit = (char)('0' + seed % 10);
        seed /= 10;
    }
    ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(written > 0 && expect_trap ? 0 : 1);
}

static int usage(void) {
    fputs("usage: sim (--seed N [--trace] | --seeds FROM COUNT) [--mutant NAME] "
          "[--expect-violation]\n       sim --mutants\n",
          stderr);
    return EXIT_USAGE;
}

static bool read_number(const char *text, uint64_t *number) {
    char *end = NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* False: not understood. */
static bool read_options(int count, char **words, struct options *options) {
    for (int i = 1; i < count; i++) {
        int left = count - 1 - i;
        if (strcmp(words[i], "--seed") == 0 && left >= 1) {
            options->count = 1;
            if (!read_number(words[++i], &options->from)) {
                return false;
            }
        } else if (strcmp(words[i], "--seeds") == 0 && left >= 2) {
            if (!read_number(words[i + 1], &options->from) ||
                !read_number(words[i + 2], &options->count)) {
                return false;
            }
            i += 2;
        } else if (strcmp(words[i], "--mutant") == 0 && left >= 1) {
            if (!mutants_plant(words[++i])) {
                return false;
            }
        } else if (strcmp(words[i], "--trace") == 0) {
            options->trace = true;
        } else if (strcmp(words[i], "--expect-violation") == 0) {
            options->expect_violation = true;
        } else {
            return false;
        }
    }
    return options->count > 0;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    struct options options = {.count = 0};
    if (count == 2 && strcmp(words[1], "--mutants") == 0) {
        mutants_list();
        return 0;
    }
    if (!read_options(count, words, &options)) {
        return usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    expect_trap = options.expect_violation;
    signal(SIGILL, on_trap);
    signal(SIGTRAP, on_trap);
    struct stats stats = {.counts = {0}};
    double start_s = now_s();
    bool violated = false;
    for (uint64_t i = 0; i < options.count && !violated; i++) {
        world_run(&world, options.from + i, &stats, options.trace);
        violated = world.violation[0] != '\0';
    }
    stats_print(&stats, now_s() - start_s);
    if (violated) {
        printf("VIOLATION in seed %llu: %s\n", (unsigned long long)world.seed, world.violation);
    }
    return violated == options.expect_violation ? 0 : 1;
}
