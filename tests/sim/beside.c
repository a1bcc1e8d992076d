#include "beside.h"

#include <stdio.h>

#define ELECTIONS 3

static struct world worlds[ELECTIONS];
static struct world lone;

/* The one whose next message is due first; NULL: all are over. */
static struct world *next(const bool *over) {
    struct world *first = NULL;
    for (int i = 0; i < ELECTIONS; i++) {
        if (!over[i] && (!first || worlds[i].queue.heap[0].at_ns < first->queue.heap[0].at_ns)) {
            first = &worlds[i];
        }
    }
    return first;
}

bool beside_run(const struct schedule *schedule, struct stats *stats) {
    static struct schedule schedules[ELECTIONS];
    static struct stats unused;
    bool over[ELECTIONS] = {false};
    for (int i = 0; i < ELECTIONS; i++) {
        schedules[i] = *schedule;
        schedules[i].seed += (uint64_t)i;
        world_begin(&worlds[i], &schedules[i], stats);
    }
    for (struct world *world = next(over); world; world = next(over)) {
        over[world - worlds] = !world_step(world);
    }
    for (int i = 0; i < ELECTIONS; i++) {
        world_end(&worlds[i]);
        world_run(&lone, &schedules[i], &unused);
        if (worlds[i].violation[0] != '\0' || worlds[i].digest != lone.digest) {
            printf("VIOLATION in seed %llu, %d elections from seed %llu on: %s\n",
                   (unsigned long long)schedules[i].seed, ELECTIONS,
                   (unsigned long long)schedule->seed,
                   worlds[i].violation[0] != '\0' ? worlds[i].violation
                                                  : "it does not go as it goes alone");
            return false;
        }
    }
    return true;
}
