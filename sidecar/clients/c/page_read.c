#include "page_read.h"

#include <string.h>

#define TRIES_MOST 1000
#define NS_PER_MS INT64_C(1000000)
/* The coarse clock stands between two ticks of the kernel, which come late on virtual machines. */
#define COARSE_BEHIND_MOST_NS (20 * NS_PER_MS)

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
               "a page shared between processes needs lock-free words");

struct snapshot {
    uint64_t sequence;
    uint64_t state;
    uint64_t token;
    int64_t boot_deadline_ns;
    int64_t real_deadline_ns;
    int64_t renewed_ns;
    int64_t valid_for_ns;
};

/* Acquire throughout: who has seen a word of a change also sees that its sequence is odd. */
static uint64_t load(page_word *words, unsigned word) {
    return atomic_load_explicit(&words[word], memory_order_acquire);
}

static void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

enum gavel_page_problem page_validate(page_word *words, const struct page_place *place) {
    if (load(words, GAVEL_PAGE_WORD_MAGIC) != GAVEL_PAGE_MAGIC) {
        return GAVEL_PAGE_NOT_A_PAGE;
    }
    if (load(words, GAVEL_PAGE_WORD_VERSION) != GAVEL_PAGE_VERSION ||
        load(words, GAVEL_PAGE_WORD_BYTES) != GAVEL_PAGE_BYTES) {
        return GAVEL_PAGE_OTHER_VERSION;
    }
    if (load(words, GAVEL_PAGE_WORD_BOOT_ID) != place->boot_id[0] ||
        load(words, GAVEL_PAGE_WORD_BOOT_ID + 1) != place->boot_id[1]) {
        return GAVEL_PAGE_OTHER_BOOT;
    }
    return load(words, GAVEL_PAGE_WORD_TIME_NAMESPACE) == place->time_namespace
               ? GAVEL_PAGE_GOOD
               : GAVEL_PAGE_OTHER_CLOCK;
}

static bool is_unchanged(page_word *words, uint64_t sequence) {
    return load(words, GAVEL_PAGE_WORD_SEQUENCE) == sequence;
}

static void load_holder(page_word *words, char *holder) {
    uint64_t text[GAVEL_PAGE_HOLDER_BYTES / 8];
    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
        text[i] = load(words, GAVEL_PAGE_WORD_HOLDER + i);
    }
    uint64_t length = load(words, GAVEL_PAGE_WORD_HOLDER_BYTES);
    length = length > sizeof text ? sizeof text : length;
    memcpy(holder, text, sizeof text);
    holder[length] = '\0';
}

/* False: a change was under way. */
static bool take(page_word *words, struct snapshot *taken, char *holder) {
    taken->sequence = load(words, GAVEL_PAGE_WORD_SEQUENCE);
    if ((taken->sequence & 1) != 0) {
        return false;
    }
    taken->state = load(words, GAVEL_PAGE_WORD_STATE);
    taken->token = load(words, GAVEL_PAGE_WORD_TOKEN);
    taken->boot_deadline_ns = (int64_t)load(words, GAVEL_PAGE_WORD_BOOT_DEADLINE);
    taken->real_deadline_ns = (int64_t)load(words, GAVEL_PAGE_WORD_REAL_DEADLINE);
    taken->renewed_ns = (int64_t)load(words, GAVEL_PAGE_WORD_RENEWED);
    taken->valid_for_ns = (int64_t)load(words, GAVEL_PAGE_WORD_VALID_FOR);
    if (holder != NULL) {
        load_holder(words, holder);
    }
    return is_unchanged(words, taken->sequence);
}

struct clocks {
    int64_t boot_ns;
    int64_t real_ns;
};

/*
 * BOOTTIME and the difference of the deadlines say what the time of day should be. If the coarse
 * clock, which the kernel sets at once when it is stepped, is behind that by a few ticks and not
 * ahead, that is the time; else the exact clock tells. What this cannot see is a step that is
 * smaller than those ticks, of a margin of 50 ms at least.
 */
static struct clocks read_clocks(page_clock_read *read_clock, const struct snapshot *taken) {
    struct clocks now = {.boot_ns = read_clock(PAGE_CLOCK_BOOTTIME)};
    if (taken->state != GAVEL_PAGE_LEADER) {
        return now;
    }
    int64_t coarse_ns = read_clock(PAGE_CLOCK_REALTIME_COARSE);
    /* Unsigned: a hostile page may hold any number. */
    uint64_t expected_ns = (uint64_t)taken->real_deadline_ns - (uint64_t)taken->boot_deadline_ns +
                           (uint64_t)now.boot_ns;
    bool expects = coarse_ns != INT64_MAX && expected_ns <= (uint64_t)INT64_MAX &&
                   expected_ns - (uint64_t)coarse_ns <= (uint64_t)COARSE_BEHIND_MOST_NS;
    now.real_ns = expects ? (int64_t)expected_ns : read_clock(PAGE_CLOCK_REALTIME);
    return now;
}

/* What a leader's page is still good for; 0: nothing. */
static int64_t valid_ns(const struct snapshot *taken, struct clocks now, int64_t *doubted_ns) {
    if (now.boot_ns >= taken->boot_deadline_ns) {
        return 0;
    }
    if (now.real_ns >= taken->real_deadline_ns) {
        *doubted_ns = now.boot_ns; /* stepping the clock back must not bring the answer back */
        return 0;
    }
    if (taken->renewed_ns < *doubted_ns || taken->token == 0) {
        return 0;
    }
    /* Unsigned: a hostile page may hold any number. */
    uint64_t boot_ns = (uint64_t)taken->boot_deadline_ns - (uint64_t)now.boot_ns;
    uint64_t real_ns = (uint64_t)taken->real_deadline_ns - (uint64_t)now.real_ns;
    uint64_t least_ns = boot_ns < real_ns ? boot_ns : real_ns;
    if (taken->valid_for_ns <= 0) {
        return 0;
    }
    uint64_t most_ns = (uint64_t)taken->valid_for_ns;
    least_ns = least_ns < most_ns ? least_ns : most_ns;
    return (int64_t)least_ns - (int64_t)least_ns % NS_PER_MS; /* as all answers are given */
}

static void judge(const struct snapshot *taken, struct clocks now, int64_t *doubted_ns,
                  struct gavel_page_answer *answer) {
    *answer = (struct gavel_page_answer){.state = GAVEL_PAGE_UNKNOWN};
    if (taken->state != GAVEL_PAGE_LEADER) {
        if (taken->state <= GAVEL_PAGE_RESIGNING) {
            answer->state = (enum gavel_page_state)taken->state;
        }
        return;
    }
    answer->valid_ns = valid_ns(taken, now, doubted_ns);
    answer->leader = answer->valid_ns > 0;
    if (answer->leader) {
        answer->state = GAVEL_PAGE_LEADER;
        answer->token = taken->token;
        answer->deadline_ns = now.boot_ns + answer->valid_ns;
    }
}

void page_read(page_word *words, page_clock_read *read_clock, int64_t *doubted_ns,
               struct gavel_page_answer *answer, char *holder) {
    for (int i = 0; i < TRIES_MOST; i++) {
        struct snapshot taken;
        if (take(words, &taken, holder)) {
            struct clocks now = read_clocks(read_clock, &taken);
            /* Once more: the writer counts on it that nobody reads the clocks after a change and
             * goes by what was there before. */
            if (is_unchanged(words, taken.sequence)) {
                judge(&taken, now, doubted_ns, answer);
                if (holder != NULL && !answer->leader && answer->state != GAVEL_PAGE_FOLLOWER) {
                    holder[0] = '\0';
                }
                return;
            }
        }
        pause_a_moment();
    }
    *answer = (struct gavel_page_answer){.state = GAVEL_PAGE_UNKNOWN, .problem = GAVEL_PAGE_BUSY};
    if (holder != NULL) {
        holder[0] = '\0';
    }
}
