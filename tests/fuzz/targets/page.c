/* A shared page that anybody may have written. Whatever is in it, a reader says "leader" only with
 * a token, inside both deadlines, for no longer than valid-for; the holder is within its bounds. */
#include "page_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static int64_t clocks[3]; /* what each shows */
static _Atomic uint64_t *page;
static uint64_t sequence_step; /* what a writer does while the clocks are read */

static int64_t read_clock(enum page_clock clock) {
    page[GAVEL_PAGE_WORD_SEQUENCE] += sequence_step;
    return clocks[clock];
}

static int64_t word(unsigned index) {
    return (int64_t)page[index];
}

/* The coarse clock is no more than a few ticks behind what the page and BOOTTIME make one expect.
 */
static bool coarse_tells(void) {
    __int128 expected_ns = (__int128)word(GAVEL_PAGE_WORD_REAL_DEADLINE) -
                           word(GAVEL_PAGE_WORD_BOOT_DEADLINE) + clocks[PAGE_CLOCK_BOOTTIME];
    __int128 behind_ns = expected_ns - clocks[PAGE_CLOCK_REALTIME_COARSE];
    return behind_ns >= 0 && behind_ns <= 20000000;
}

static void check_leader(const struct gavel_page_answer *answer) {
    require(answer->state == GAVEL_PAGE_LEADER && answer->problem == GAVEL_PAGE_GOOD);
    require(word(GAVEL_PAGE_WORD_STATE) == GAVEL_PAGE_LEADER && answer->token != 0);
    require(answer->valid_ns > 0 && answer->valid_ns <= word(GAVEL_PAGE_WORD_VALID_FOR));
    require(answer->deadline_ns == clocks[PAGE_CLOCK_BOOTTIME] + answer->valid_ns);
    require(answer->deadline_ns <= word(GAVEL_PAGE_WORD_BOOT_DEADLINE));
    require(coarse_tells() || clocks[PAGE_CLOCK_REALTIME] < word(GAVEL_PAGE_WORD_REAL_DEADLINE));
    require((page[GAVEL_PAGE_WORD_SEQUENCE] & 1) == 0);
}

static void check_answer(const struct gavel_page_answer *answer, const char *holder) {
    require(memchr(holder, '\0', GAVEL_PAGE_HOLDER_BYTES + 1) != NULL);
    require((int)answer->state >= 0 && answer->state <= GAVEL_PAGE_RESIGNING);
    if (answer->leader) {
        check_leader(answer);
        return;
    }
    require(answer->state != GAVEL_PAGE_LEADER && answer->token == 0);
    require(answer->valid_ns == 0 && answer->deadline_ns == 0);
    require(holder[0] == '\0' || answer->state == GAVEL_PAGE_FOLLOWER);
}

/* Input: two clocks, the doubt, how far the third clock is behind, one byte for the writer, then
 * the page's words. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t times[4] = {0};
    struct page_place place = {{1, 2}, 3};
    page = calloc(1, GAVEL_PAGE_BYTES);
    require(page != NULL);
    if (size > sizeof times + 1) {
        size_t rest = size - sizeof times - 1;
        memcpy(times, data, sizeof times);
        memcpy((void *)page, data + sizeof times + 1,
               rest < GAVEL_PAGE_BYTES ? rest : GAVEL_PAGE_BYTES);
        sequence_step = data[sizeof times] % 4 == 3 ? 1 : 0;
    }
    /* Clocks that a kernel can show. */
    clocks[PAGE_CLOCK_BOOTTIME] = times[0] & INT64_MAX;
    clocks[PAGE_CLOCK_REALTIME] = times[1] & INT64_MAX;
    clocks[PAGE_CLOCK_REALTIME_COARSE] = (times[1] & INT64_MAX) - (times[3] & UINT32_MAX);
    int64_t doubted_ns = times[2] & INT64_MAX;
    (void)page_validate(page, &place);
    struct gavel_page_answer answer;
    char *holder = malloc(GAVEL_PAGE_HOLDER_BYTES + 1);
    require(holder != NULL);
    int64_t doubted_before_ns = doubted_ns;
    page_read(page, read_clock, &doubted_ns, &answer, holder);
    check_answer(&answer, holder);
    require(!answer.leader || word(GAVEL_PAGE_WORD_RENEWED) >= doubted_before_ns);
    page_read(page, read_clock, &doubted_ns, &answer, NULL);
    free(holder);
    free((void *)page);
    return 0;
}
