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

static struct page_clocks now;
static _Atomic uint64_t *page;
static uint64_t sequence_step; /* what a writer does while the clocks are read */

static struct page_clocks read_clocks(void) {
    page[GAVEL_PAGE_WORD_SEQUENCE] += sequence_step;
    return now;
}

static int64_t word(unsigned index) {
    return (int64_t)page[index];
}

static void check_leader(const struct gavel_page_answer *answer) {
    require(answer->state == GAVEL_PAGE_LEADER && answer->problem == GAVEL_PAGE_GOOD);
    require(word(GAVEL_PAGE_WORD_STATE) == GAVEL_PAGE_LEADER && answer->token != 0);
    require(answer->valid_ns > 0 && answer->valid_ns <= word(GAVEL_PAGE_WORD_VALID_FOR));
    require(answer->deadline_ns == now.boot_ns + answer->valid_ns);
    require(answer->deadline_ns <= word(GAVEL_PAGE_WORD_BOOT_DEADLINE));
    require(now.real_ns < word(GAVEL_PAGE_WORD_REAL_DEADLINE));
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

/* Input: the two clocks, the doubt, one byte for the writer, then the page's words. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t times[3] = {0};
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
    now.boot_ns = times[0] & INT64_MAX;
    now.real_ns = times[1] & INT64_MAX;
    int64_t doubted_ns = times[2] & INT64_MAX;
    (void)page_validate(page, &place);
    struct gavel_page_answer answer;
    char *holder = malloc(GAVEL_PAGE_HOLDER_BYTES + 1);
    require(holder != NULL);
    int64_t doubted_before_ns = doubted_ns;
    page_read(page, read_clocks, &doubted_ns, &answer, holder);
    check_answer(&answer, holder);
    require(!answer.leader || word(GAVEL_PAGE_WORD_RENEWED) >= doubted_before_ns);
    page_read(page, read_clocks, &doubted_ns, &answer, NULL);
    free(holder);
    free((void *)page);
    return 0;
}
