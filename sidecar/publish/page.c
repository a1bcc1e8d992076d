#include "publish/page.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "publish/page_place.h"

#include <stdlib.h>
#include <string.h>

/* Another processor sees a change a moment later than the one that made it. */
#define SEEN_WITHIN_NS NS_PER_MS

_Static_assert(STATE_UNKNOWN == (int)GAVEL_PAGE_UNKNOWN &&
                   STATE_FOLLOWER == (int)GAVEL_PAGE_FOLLOWER &&
                   STATE_PENDING == (int)GAVEL_PAGE_PENDING &&
                   STATE_LEADER == (int)GAVEL_PAGE_LEADER &&
                   STATE_RESIGNING == (int)GAVEL_PAGE_RESIGNING,
               "the page's states are ours");
_Static_assert(HOLDER_MAX - 1 <= GAVEL_PAGE_HOLDER_BYTES, "the longest holder fits");

/* What a page says, but for the holder: that follows from the state and the view. */
struct shown {
    uint64_t state;
    uint64_t token;
    int64_t boot_deadline_ns;
    int64_t real_deadline_ns;
    int64_t renewed_ns;
    int64_t valid_for_ns;
};

struct page {
    _Atomic uint64_t *words;
    struct shown shown; /* as it was written last */
};

struct pages {
    struct pages_setup setup;
    struct page_place place;
    struct page_origin origin;
    struct page *pages;
    size_t made;
};

static void set_holder(struct page_content *content, const char *holder) {
    content->holder_length = strnlen(holder, sizeof content->holder);
    memcpy(content->holder, holder, content->holder_length);
}

static bool says_leader(const struct shown *shown) {
    return shown->state == GAVEL_PAGE_LEADER;
}

static struct shown shown_of(const struct page_content *content) {
    return (struct shown){.state = content->state,
                          .token = content->token,
                          .boot_deadline_ns = content->boot_deadline_ns,
                          .real_deadline_ns = content->real_deadline_ns,
                          .renewed_ns = content->renewed_ns,
                          .valid_for_ns = content->valid_for_ns};
}

static void fill_content(const struct pages *pages, struct page_content *content,
                         const struct view *view, bool attached) {
    memset(content, 0, sizeof *content);
    const struct lease *lease = &view->lease;
    content->state = (uint64_t)view->state;
    content->valid_for_ns = view->valid_for_ns;
    if (attached && content->valid_for_ns > PAGE_ATTACHED_NS) {
        content->valid_for_ns = PAGE_ATTACHED_NS;
    }
    if (view->state == STATE_LEADER && lease->latched_ns != 0) {
        content->state = GAVEL_PAGE_UNKNOWN;
    } else if (view->state == STATE_LEADER) {
        content->token = view->token;
        content->boot_deadline_ns = lease->boot_deadline_ns;
        content->real_deadline_ns = lease->real_deadline_ns;
        content->renewed_ns = lease->boot_deadline_ns - pages->setup.good_for_ns;
        set_holder(content, pages->setup.board->identity);
    } else if (view->state == STATE_FOLLOWER) {
        set_holder(content, view->holder);
    }
}

int64_t pages_readable_until_ns(const struct pages *pages, size_t election, struct instant now) {
    const struct shown *shown = &pages->pages[election].shown;
    if (!says_leader(shown)) {
        return 0;
    }
    int64_t until_ns = now.boot_ns + SEEN_WITHIN_NS + shown->valid_for_ns;
    return until_ns < shown->boot_deadline_ns ? until_ns : shown->boot_deadline_ns;
}

void pages_show(struct pages *pages, size_t election, const struct view *view, bool attached,
                struct handouts *handouts) {
    struct page *page = &pages->pages[election];
    struct page_content content;
    fill_content(pages, &content, view, attached);
    struct shown shown = shown_of(&content);
    /* The board still has the view that the page was made of. */
    const char *holder = pages->setup.board->entries[election].view.holder;
    if (memcmp(&shown, &page->shown, sizeof shown) == 0 && strcmp(holder, view->holder) == 0) {
        return;
    }
    page_words_write(page->words, &content);
    if (says_leader(&page->shown) &&
        (!says_leader(&shown) || shown.boot_deadline_ns < page->shown.boot_deadline_ns ||
         shown.valid_for_ns < page->shown.valid_for_ns)) {
        /* The clock is read after the change: whoever read the page did it before. */
        int64_t until_ns = pages_readable_until_ns(pages, election, clock_now());
        if (until_ns > handouts->until_ns) {
            handouts->until_ns = until_ns;
        }
    }
    page->shown = shown;
}

struct filling {
    struct pages *pages;
    struct page_content content;
};

static void fill(void *context, _Atomic uint64_t *words) {
    struct filling *filling = context;
    page_words_begin(words, &filling->pages->origin);
    page_words_write(words, &filling->content);
}

static bool make_all(struct pages *pages, struct error *error) {
    const struct board *board = pages->setup.board;
    for (size_t i = 0; i < board->count; i++) {
        struct page *page = &pages->pages[i];
        struct filling filling = {.pages = pages};
        fill_content(pages, &filling.content, &board->entries[i].view, false);
        page->shown = shown_of(&filling.content);
        page->words = page_place_make(&pages->place, board->entries[i].name, fill, &filling, error);
        if (page->words == NULL) {
            return false;
        }
        pages->made++;
    }
    return true;
}

struct pages *pages_create(const struct pages_setup *setup, struct error *error) {
    struct pages *pages = memory_zeroed(1, sizeof *pages);
    pages->setup = *setup;
    if (!page_origin_read(&pages->origin, error) ||
        !page_place_open(&pages->place, setup->directory, error)) {
        free(pages);
        return NULL;
    }
    pages->pages = memory_zeroed(setup->board->count, sizeof *pages->pages);
    if (!make_all(pages, error)) {
        pages_destroy(pages);
        return NULL;
    }
    if (page_place_is_slow(&pages->place)) {
        log_event(LOG_WARN, "page-dir-on-disk", LOG_TEXT("directory", setup->directory),
                  LOG_TEXT("detail", "a change of a page may have to wait for the disk, and all "
                                     "else with it: a folder on tmpfs, such as one below /run, "
                                     "is right"));
    }
    return pages;
}

void pages_destroy(struct pages *pages) {
    const struct board *board = pages->setup.board;
    for (size_t i = 0; i < pages->made; i++) {
        struct page_content gone = {.state = GAVEL_PAGE_UNKNOWN};
        page_words_write(pages->pages[i].words, &gone);
        page_place_remove(&pages->place, board->entries[i].name, pages->pages[i].words);
    }
    page_place_close(&pages->place);
    free(pages->pages);
    free(pages);
}
