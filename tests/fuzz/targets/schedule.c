/* A schedule of the simulator: the bytes decide hosts, clocks, store, network and faults, two a
 * decision, in the order in which they are made; what they do not reach follows from them. No
 * promise may be broken, whatever happens. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct world world;
    static struct stats stats;
    struct schedule schedule = {.seed = size, .tape = data, .tape_size = size};
    for (size_t i = 0; i < size; i++) {
        schedule.seed = rng_mix(schedule.seed + data[i]);
    }
    world_run(&world, &schedule, &stats);
    if (world.violation[0] != '\0') {
        fprintf(stderr, "VIOLATION %s\n", world.violation);
        schedule.trace = true;
        world_run(&world, &schedule, &stats);
        abort();
    }
    return 0;
}
