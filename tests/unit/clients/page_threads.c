/*
 * One writer and several readers of a page that is in memory. Built with ThreadSanitizer on its
 * own, whatever the rest is built with: a data race ends it. And what a reader takes for whole must
 * be of one change: the token, the deadlines and the holder all carry the same number. What it was
 * told is never older than the change that the writer had finished before the reader's clock.
 */
#include "page_read.h"
#include "publish/page_words.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READERS 3
#define LEAD_NS INT64_C(1000000000000)

static _Atomic uint64_t page[GAVEL_PAGE_BYTES / 8];
static _Atomic uint64_t finished; /* the number of the last change that is over */
static _Atomic bool over;
static _Thread_local uint64_t finished_at_clock;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Number n: even ones lead, odd ones do not. */
static void write_number(uint64_t number) {
    struct page_content content = {.state =
                                       number % 2 == 0 ? GAVEL_PAGE_LEADER : GAVEL_PAGE_FOLLOWER,
                                   .token = number + 1,
                                   .boot_deadline_ns = LEAD_NS + (int64_t)number * 1000000,
                                   .real_deadline_ns = INT64_MAX,
                                   .valid_for_ns = INT64_MAX};
    content.holder_length = (uint64_t)snprintf(content.holder, sizeof content.holder, "%0160llu",
                                               (unsigned long long)number);
    page_words_write(page, &content);
    atomic_store(&finished, number);
}

static void *write_all(void *argument) {
    uint64_t count = *(uint64_t *)argument;
    for (uint64_t number = 1; number <= count; number++) {
        write_number(number);
        if (number % 64 == 0) { /* some rest, or no reader ever finds it whole */
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        }
    }
    atomic_store(&over, true);
    return NULL;
}

static int64_t read_clock(enum page_clock clock) {
    if (clock == PAGE_CLOCK_BOOTTIME) {
        finished_at_clock = atomic_load(&finished);
    }
    return 0;
}

static void check_whole(const struct gavel_page_answer *answer, const char *holder) {
    uint64_t number = strtoull(holder, NULL, 10);
    if (strlen(holder) != 160 || number < finished_at_clock) {
        fail("an answer from before a change that was over");
    }
    if (answer->leader != (number % 2 == 0)) {
        fail("state and holder of different changes");
    }
    if (answer->leader &&
        (answer->token != number + 1 || answer->valid_ns != LEAD_NS + (int64_t)number * 1000000)) {
        fail("token, deadline and holder of different changes");
    }
}

static void *read_all(void *argument) {
    uint64_t *whole = argument;
    int64_t doubted_ns = 0;
    do {
        struct gavel_page_answer answer;
        char holder[GAVEL_PAGE_HOLDER_BYTES + 1];
        page_read(page, read_clock, &doubted_ns, &answer, holder);
        if (answer.problem == GAVEL_PAGE_GOOD) {
            check_whole(&answer, holder);
            ++*whole;
        } else if (answer.problem != GAVEL_PAGE_BUSY || answer.leader || holder[0] != '\0') {
            fail("neither whole nor busy");
        }
    } while (!atomic_load(&over));
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t changes = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    pthread_t writer;
    pthread_t readers[READERS];
    uint64_t whole[READERS] = {0};
    write_number(0);
    for (int i = 0; i < READERS; i++) {
        pthread_create(&readers[i], NULL, read_all, &whole[i]);
    }
    pthread_create(&writer, NULL, write_all, &changes);
    pthread_join(writer, NULL);
    uint64_t sum = 0;
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
        sum += whole[i];
    }
    printf("%llu changes, %llu whole readings\n", (unsigned long long)changes,
           (unsigned long long)sum);
    return sum > 0 ? 0 : 1;
}
