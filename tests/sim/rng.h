#ifndef GAVEL_SIM_RNG_H
#define GAVEL_SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seeded random numbers (splitmix64): the same seed always plays the same schedule. A tape comes
 * before the seed, two bytes a number: what a fuzzer writes. */
struct rng {
    uint64_t state;
    const unsigned char *tape;
    size_t tape_left;
};

static inline uint64_t rng_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint64_t rng_next(struct rng *rng) {
    if (rng->tape_left >= 2) {
        uint64_t word = (uint64_t)rng->tape[0] << 8 | rng->tape[1];
        rng->tape += 2;
        rng->tape_left -= 2;
        return word < 1000 ? word : rng_mix(word); /* small ones choose, the others are anything */
    }
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    return rng_mix(rng->state);
}

/* From low to high, both included. */
static inline int64_t rng_between(struct rng *rng, int64_t low, int64_t high) {
    if (high <= low) {
        return low;
    }
    return low + (int64_t)(rng_next(rng) % (uint64_t)(high - low + 1));
}

/* Below count. */
static inline int rng_index(struct rng *rng, int count) {
    return (int)rng_between(rng, 0, count - 1);
}

static inline bool rng_chance(struct rng *rng, int permille) {
    return rng_between(rng, 0, 999) < permille;
}

#endif
