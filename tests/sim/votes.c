/*
 * The simulator of several servers that vote: candidates with the core and its rounds as they are
 * shipped, model stores as nodes, seeded faults, virtual time.
 *
 *   votes --seeds FROM COUNT [--mutant NAME] [--expect-violation] [--trace] [--whole]
 *         [--off PARTS] [--without LIST]
 *   votes --seconds S | --hours H [--least N]
 *
 * --least: so many schedules, though they take longer.
 *
 * Judged: a leader's lease is what a majority of nodes said yes to, and keeps (P1); tokens rise
 * from each grant to the next (P2); nobody leads while a validity of another grant still runs (P3),
 * and no lock is given back while its own does (P4); and somebody leads when the faults are long
 * over. A schedule that fails is shrunk. Exit: 0 nothing wrong, 1 a violation, 64 usage.
 */
#include "votes.h"

#include "mutants.h"
#include "shrink.h"
#include "trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    struct schedule schedule;
    uint64_t seeds;
    double seconds; /* 0: the number of seeds decides */
    uint64_t least; /* schedules, however long they take */
    bool expect;
    bool whole;
};

static struct votes_world world;

static int usage(void) {
    fputs(
        "usage: votes (--seeds FROM COUNT | --seconds S | --hours H) [--least N] [--mutant NAME]\n"
        "             [--expect-violation] [--trace] [--whole] [--off PARTS] [--without LIST]\n",
        stderr);
    return 64;
}

static bool read_pair(struct options *options, const char *name, const char *word) {
    bool hours = strcmp(name, "--hours") == 0;
    if (hours || strcmp(name, "--seconds") == 0) {
        options->seconds = strtod(word, NULL) * (hours ? 3600 : 1);
        options->schedule.seed = (uint64_t)time(NULL) * 1000000;
        options->seeds = UINT64_MAX;
        return options->seconds > 0;
    }
    if (strcmp(name, "--least") == 0) {
        options->least = strtoull(word, NULL, 10);
        return true;
    }
    if (strcmp(name, "--seed") == 0) { /* as a shrunk schedule is printed */
        options->schedule.seed = strtoull(word, NULL, 10);
        options->seeds = 1;
        return true;
    }
    if (strcmp(name, "--off") == 0) {
        return schedule_read_off(&options->schedule, word);
    }
    if (strcmp(name, "--without") == 0) {
        return schedule_read_without(&options->schedule, word);
    }
    return strcmp(name, "--mutant") == 0 && mutants_plant(word);
}

static bool read_options(int count, char **words, struct options *options) {
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--seeds") == 0 && i + 2 < count) {
            options->schedule.seed = strtoull(words[i + 1], NULL, 10);
            options->seeds = strtoull(words[i + 2], NULL, 10);
            i += 2;
        } else if (strcmp(words[i], "--expect-violation") == 0) {
            options->expect = true;
        } else if (strcmp(words[i], "--trace") == 0) {
            options->schedule.trace = true;
        } else if (strcmp(words[i], "--whole") == 0) {
            options->whole = true;
        } else if (i + 1 < count && read_pair(options, words[i], words[i + 1])) {
            i++;
        } else {
            return false;
        }
    }
    return options->seeds > 0;
}

static bool fails(void *context, const struct schedule *schedule) {
    votes_run(&world, schedule);
    return world.violation[0] != '\0' && shrink_same_kind(world.violation, context);
}

static void show_shrunk(struct options *options) {
    char found[sizeof world.violation];
    memcpy(found, world.violation, sizeof found);
    unsigned played = shrink(&options->schedule, fails, found);
    printf("shrunk in %u schedules to:\n", played);
    options->schedule.trace = true;
    votes_run(&world, &options->schedule);
    votes_trace(&world, "VIOLATION %s", world.violation);
    printf("%d hosts, %d faults left of %u; again: votes ", world.host_count,
           schedule_faults_left(&options->schedule, world.faults, 0), world.faults);
    schedule_print(&options->schedule);
    printf(" --trace\n");
}

int main(int count, char **words) {
    static struct options options;
    if (!read_options(count, words, &options)) {
        return usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    trap_watch(&options.schedule.seed, &options.expect);
    uint64_t first = options.schedule.seed;
    uint64_t grants = 0;
    uint64_t failovers = 0;
    uint64_t played = 0;
    time_t begun = time(NULL);
    if (options.seconds > 0) { /* now: nobody knows how it ends */
        printf("from seed %llu on; again: votes --seeds %llu COUNT\n", (unsigned long long)first,
               (unsigned long long)first);
    }
    while (played < options.seeds && (options.seconds <= 0 || played < options.least ||
                                      difftime(time(NULL), begun) < options.seconds)) {
        options.schedule.seed = first + played++;
        votes_run(&world, &options.schedule);
        grants += world.grants;
        failovers += world.failovers;
        if (world.violation[0] != '\0') {
            printf("VIOLATION in seed %llu: %s\n", (unsigned long long)options.schedule.seed,
                   world.violation);
            if (!options.expect && !options.whole) {
                show_shrunk(&options);
            }
            return options.expect ? 0 : 1;
        }
    }
    printf("%llu schedules from seed %llu on, %llu grants led, %llu failovers, no violation\n",
           (unsigned long long)played, (unsigned long long)first, (unsigned long long)grants,
           (unsigned long long)failovers);
    /* A simulation in which nobody leads finds nothing. */
    return options.expect || grants < played ? 1 : 0;
}
