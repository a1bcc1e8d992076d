/*
 * The simulator: seeded schedules of hosts, clocks, processes, a network, a store and readers, in
 * virtual time, around the election core as it is shipped.
 *
 *   sim --seed N [--trace]             one schedule
 *   sim --seeds FROM COUNT             many, until the first violation
 *   sim --seconds S | --hours H        as many as there is time for, from a seed that is printed
 *       [--least N]                    ... and so many, though it takes longer
 *   sim --beside FROM COUNT            several elections at a time in one process, which must go as
 *                                      each does alone
 *   sim ... --mutant NAME              with a fault planted; --mutants lists them
 *   sim ... --expect-violation         0 when a violation is found, 1 when none is
 *   sim ... --off PARTS --without LIST with less in it: what a shrunk schedule is played again by
 *   sim ... --whole                    a schedule that fails is not shrunk
 *
 * A schedule that fails is shrunk, and the short one printed as a trace.
 * Exit: 0 nothing wrong, 1 a violation (printed with its seed), 64 usage.
 */
#include "beside.h"
#include "mutants.h"
#include "shrink.h"
#include "trap.h"
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_USAGE 64

struct options {
    struct schedule schedule; /* of the first seed */
    uint64_t count;
    double seconds; /* 0: count decides */
    uint64_t least; /* schedules, however long they take */
    bool expect_violation;
    bool whole;
    bool beside;
};

static struct world world;
static struct options options;

static bool read_number(const char *text, uint64_t *number) {
    char *end = NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool read_time(const char *text, double unit_s) {
    char *end = NULL;
    options.seconds = strtod(text, &end) * unit_s;
    options.schedule.seed = (uint64_t)time(NULL) * 1000000;
    options.count = UINT64_MAX;
    return end != text && *end == '\0' && options.seconds > 0;
}

static bool read_seeds(char **words) {
    return read_number(words[0], &options.schedule.seed) && read_number(words[1], &options.count);
}

static bool read_seed(char **words) {
    options.count = 1;
    return read_number(words[0], &options.schedule.seed);
}

static bool read_beside(char **words) {
    options.beside = true;
    return read_seeds(words);
}

static bool read_seconds(char **words) {
    return read_time(words[0], 1);
}

static bool read_hours(char **words) {
    return read_time(words[0], 3600);
}

static bool read_least(char **words) {
    return read_number(words[0], &options.least);
}

static bool read_mutant(char **words) {
    return mutants_plant(words[0]);
}

static bool read_off(char **words) {
    return schedule_read_off(&options.schedule, words[0]);
}

static bool read_without(char **words) {
    return schedule_read_without(&options.schedule, words[0]);
}

static bool read_trace(char **words) {
    (void)words;
    options.schedule.trace = true;
    return true;
}

static bool read_expect(char **words) {
    (void)words;
    options.expect_violation = true;
    return true;
}

static bool read_whole(char **words) {
    (void)words;
    options.whole = true;
    return true;
}

static const struct {
    const char *name;
    int words;
    bool (*read)(char **words);
} flags[] = {
    {"--seed", 1, read_seed},       {"--seeds", 2, read_seeds},
    {"--seconds", 1, read_seconds}, {"--hours", 1, read_hours},
    {"--least", 1, read_least},     {"--beside", 2, read_beside},
    {"--mutant", 1, read_mutant},   {"--off", 1, read_off},
    {"--without", 1, read_without}, {"--trace", 0, read_trace},
    {"--whole", 0, read_whole},     {"--expect-violation", 0, read_expect},
};

/* False: not understood. */
static bool read_options(int count, char **words) {
    for (int i = 1; i < count; i++) {
        size_t flag = 0;
        size_t known = sizeof flags / sizeof flags[0];
        while (flag < known && strcmp(words[i], flags[flag].name) != 0) {
            flag++;
        }
        if (flag == known || i + flags[flag].words >= count || !flags[flag].read(words + i + 1)) {
            return false;
        }
        i += flags[flag].words;
    }
    return options.count > 0;
}

static int usage(void) {
    fputs("usage: sim (--seed N | --seeds FROM COUNT | --seconds S | --hours H | "
          "--beside FROM COUNT)\n           [--least N] [--trace] [--mutant NAME] "
          "[--expect-violation] "
          "[--whole] [--off PARTS] [--without LIST]\n       sim --mutants\n",
          stderr);
    return EXIT_USAGE;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct found {
    struct stats stats; /* of no interest */
    char violation[sizeof world.violation];
};

static bool fails(void *context, const struct schedule *schedule) {
    struct found *found = context;
    world_run(&world, schedule, &found->stats);
    return world.violation[0] != '\0' && shrink_same_kind(world.violation, found->violation);
}

/* The short one, as a trace. */
static void show_shrunk(void) {
    static struct found found;
    memcpy(found.violation, world.violation, sizeof found.violation);
    unsigned played = shrink(&options.schedule, fails, &found);
    printf("shrunk in %u schedules to:\n", played);
    options.schedule.trace = true;
    world_run(&world, &options.schedule, &found.stats);
    printf("%d hosts, %d faults left of %u; again: sim ", world.plan.hosts,
           schedule_faults_left(&options.schedule, world.faults, world.app_faults),
           world.faults + world.app_faults);
    schedule_print(&options.schedule);
    printf(" --trace\n");
}

static bool play(struct stats *stats) {
    double start_s = now_s();
    uint64_t first = options.schedule.seed;
    bool violated = false;
    if (options.seconds > 0) { /* now: nobody knows how it ends */
        printf("from seed %llu on; again: sim --seeds %llu COUNT\n", (unsigned long long)first,
               (unsigned long long)first);
    }
    for (uint64_t i = 0; i < options.count && !violated; i++) {
        options.schedule.seed = first + i;
        if (options.beside) {
            violated = !beside_run(&options.schedule, stats);
        } else {
            world_run(&world, &options.schedule, stats);
            violated = world.violation[0] != '\0';
        }
        if (options.seconds > 0 && i + 1 >= options.least && now_s() - start_s >= options.seconds) {
            break;
        }
    }
    stats_print(stats, now_s() - start_s);
    if (options.seconds > 0) {
        printf("seeds %llu to %llu, %llu failovers\n", (unsigned long long)first,
               (unsigned long long)options.schedule.seed,
               (unsigned long long)stats->counts[STAT_TAKEOVERS]);
    }
    return violated;
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "--mutants") == 0) {
        mutants_list();
        return 0;
    }
    if (!read_options(count, words)) {
        return usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    trap_watch(&options.schedule.seed, &options.expect_violation);
    struct stats stats = {.counts = {0}};
    bool violated = play(&stats);
    if (violated && !options.beside) {
        printf("VIOLATION in seed %llu: %s\n", (unsigned long long)options.schedule.seed,
               world.violation);
        if (!options.whole && !options.expect_violation) {
            show_shrunk();
        }
    }
    return violated == options.expect_violation ? 0 : 1;
}
