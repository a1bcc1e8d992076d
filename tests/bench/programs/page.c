/*
 * bench_page PATH ROUNDS BATCH: batches of checks of the shared page PATH and of clock_gettime()
 * in turn; a line "TARGET NS" for each batch, NS for one call: 0 is the page, 1 is CLOCK_BOOTTIME,
 * 2 is CLOCK_BOOTTIME and CLOCK_REALTIME. The page has to say "leader" each time.
 * bench_page PATH COUNT: so many checks and nothing else, for strace.
 */
#include "gavel_page.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void check(struct gavel_page *page, unsigned count) {
    struct gavel_page_answer answer;
    for (unsigned i = 0; i < count; i++) {
        if (!gavel_page_check(page, &answer)) {
            (void)fprintf(stderr, "not leader: %s\n", gavel_page_problem_text(answer.problem));
            exit(1);
        }
    }
}

static void read_clocks(unsigned count, unsigned clocks) {
    struct timespec time;
    for (unsigned i = 0; i < count; i++) {
        (void)clock_gettime(CLOCK_BOOTTIME, &time);
        if (clocks > 1) {
            (void)clock_gettime(CLOCK_REALTIME, &time);
        }
    }
}

static void measure(struct gavel_page *page, unsigned which, unsigned batch) {
    int64_t begun_ns = now_ns();
    if (which == 0) {
        check(page, batch);
    } else {
        read_clocks(batch, which);
    }
    (void)printf("%u %.2f\n", which, (double)(now_ns() - begun_ns) / batch);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 64;
    }
    struct gavel_page *page = gavel_page_create(argv[1]);
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    if (page == NULL) {
        return 1;
    }
    if (argc == 3) {
        check(page, count);
    } else {
        unsigned batch = (unsigned)strtoul(argv[3], NULL, 10);
        for (unsigned round = 0; round < count * 3; round++) {
            measure(page, round % 3, batch);
        }
    }
    gavel_page_destroy(page);
    return 0;
}
