#ifndef GAVEL_TESTS_PUBLISH_BOARD_DESK_H
#define GAVEL_TESTS_PUBLISH_BOARD_DESK_H

/* A board of three elections, for cmocka; include that first. */

#include "base/clock.h"
#include "publish/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct desk {
    struct board board;
    struct board_entry entries[3];
    size_t doubts[3];
};

static void on_doubt(void *context, size_t election) {
    struct desk *desk = context;
    desk->doubts[election]++;
}

static void on_lock_space(void *context, size_t election, char *text, size_t size) {
    (void)context;
    snprintf(text, size, "run-id/0/gavel:{default/%zu}", election);
}

static int setup(void **state) {
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->entries[0].name = "billing";
    desk->entries[1].name = "mail";
    desk->entries[2].name = "mailer";
    desk->board = (struct board){.namespace_ = "default",
                                 .identity = "pod-a",
                                 .store_kind = "redis",
                                 .mode = "correctness",
                                 .entries = desk->entries,
                                 .count = 3,
                                 .lock_space = on_lock_space,
                                 .doubted = on_doubt,
                                 .context = desk};
    *state = desk;
    return 0;
}

static int teardown(void **state) {
    free(*state);
    return 0;
}

static void lead(struct board_entry *entry, int64_t good_for_ns) {
    entry->view.state = STATE_LEADER;
    entry->view.reason = REASON_RENEWED;
    entry->view.token = UINT64_C(1796157414879);
    entry->view.valid_for_ns = 2 * NS_PER_S;
    lease_extend(&entry->view.lease, clock_now(), good_for_ns);
}

#endif
