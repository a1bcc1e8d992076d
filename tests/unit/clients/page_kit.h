#ifndef GAVEL_TESTS_CLIENTS_PAGE_KIT_H
#define GAVEL_TESTS_CLIENTS_PAGE_KIT_H

#include "gavel_page.h"
#include "publish/page.h"

/* A board with one or two elections, its pages in a folder of their own, and a reader of the first
 * one's. */
#define PAGE_TOKEN UINT64_C(1796157414879)
#define PAGE_GOOD_FOR_NS (8 * NS_PER_S)

struct page_fixture {
    char folder[32];
    char path[64]; /* of the first election's page */
    struct board_entry entries[2];
    struct board board;
    struct pages_setup setup;
    struct gavel_page *reader;
};

/* Of cmocka. */
int page_setup_fixture(void **state);
int page_teardown_fixture(void **state);

/* A view of a leader whose lease was confirmed now. */
struct view page_leader_view(int64_t valid_for_ns);
/* Publishes as the sidecar does. */
void page_publish(struct page_fixture *fixture, const struct view *view);
void page_publish_state(struct page_fixture *fixture, enum election_state state,
                        const char *holder);

/* The file's words, for those who break them. NULL cannot be. To be unmapped by the process' end.
 */
uint64_t *page_map_words(const char *path);

#endif
