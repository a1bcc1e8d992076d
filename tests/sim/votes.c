/*
 * The simulator of several servers that vote: candidates with the core and its rounds as they are
 * shipped, model stores as nodes, seeded faults, virtual time.
 *
 *   votes --seeds FROM COUNT [--mutant NAME] [--expect-violation] [--trace]
 *
 * Judged: no two candidates answer "leader" while a validity of the other still runs, and tokens
 * rise from each grant to the next. Exit: 0 nothing wrong, 1 a violation, 64 usage.
 */
#include "votes.h"

#include "mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct votes_world world;

static int usage(void) {
    fputs("usage: votes --seeds FROM COUNT [--mutant NAME] [--expect-violation] [--trace]\n",
          stderr);
    return 64;
}

int main(int count, char **words) {
    uint64_t from = 0;
    uint64_t seeds = 0;
    bool expect = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--seeds") == 0 && i + 2 < count) {
            from = strtoull(words[i + 1], NULL, 10);
            seeds = strtoull(words[i + 2], NULL, 10);
            i += 2;
        } else if (strcmp(words[i], "--mutant") == 0 && i + 1 < count) {
            if (!mutants_plant(words[++i])) {
                return usage();
            }
        } else if (strcmp(words[i], "--expect-violation") == 0) {
            expect = true;
        } else if (strcmp(words[i], "--trace") == 0) {
            world.trace = true;
        } else {
            return usage();
        }
    }
    if (seeds == 0) {
        return usage();
    }
    uint64_t grants = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        votes_run(&world, seed);
        grants += world.grants;
        if (world.violation[0] != '\0') {
            printf("VIOLATION in seed %llu: %s\n", (unsigned long long)seed, world.violation);
            return expect ? 0 : 1;
        }
    }
    printf("%llu schedules, %llu grants led, no violation\n", (unsigned long long)seeds,
           (unsigned long long)grants);
    /* A simulation in which nobody leads finds nothing. */
    return expect || grants < seeds ? 1 : 0;
}
