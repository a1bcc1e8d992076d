#include "page_kit.h"

#include "base/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

int page_setup_fixture(void **state) {
    struct page_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    strcpy(fixture->folder, "/tmp/gavel-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/billing.lease", fixture->folder);
    fixture->entries[0].name = "billing";
    fixture->entries[1].name = "mail";
    fixture->board = (struct board){.identity = "pod-a", .entries = fixture->entries, .count = 1};
    fixture->setup = (struct pages_setup){
        .directory = fixture->folder, .board = &fixture->board, .good_for_ns = PAGE_GOOD_FOR_NS};
    struct error error = {""};
    fixture->board.pages = pages_create(&fixture->setup, &error);
    assert_string_equal(error.text, "");
    assert_non_null(fixture->board.pages);
    fixture->reader = gavel_page_create(fixture->path);
    assert_non_null(fixture->reader);
    *state = fixture;
    return 0;
}

int page_teardown_fixture(void **state) {
    struct page_fixture *fixture = *state;
    char command[64];
    gavel_page_destroy(fixture->reader);
    if (fixture->board.pages != NULL) {
        pages_destroy(fixture->board.pages);
    }
    snprintf(command, sizeof command, "rm -rf %s", fixture->folder);
    assert_int_equal(system(command), 0);
    free(fixture);
    return 0;
}

struct view page_leader_view(int64_t valid_for_ns) {
    struct instant now = clock_now();
    struct view view = {.state = STATE_LEADER,
                        .reason = REASON_RENEWED,
                        .token = PAGE_TOKEN,
                        .valid_for_ns = valid_for_ns};
    lease_extend(&view.lease, now, PAGE_GOOD_FOR_NS);
    return view;
}

void page_publish(struct page_fixture *fixture, const struct view *view) {
    board_publish(&fixture->board, &fixture->entries[0], view, true);
}

void page_publish_state(struct page_fixture *fixture, enum election_state state,
                        const char *holder) {
    struct view view = {.state = state, .valid_for_ns = 2 * NS_PER_S};
    snprintf(view.holder, sizeof view.holder, "%s", holder);
    page_publish(fixture, &view);
}

uint64_t *page_map_words(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    void *words = mmap(NULL, GAVEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(words != MAP_FAILED);
    close(fd);
    return words;
}
