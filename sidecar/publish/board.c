#include "publish/board.h"

#include "base/clock.h"
#include "base/memory.h"
#include "publish/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t index_of(const struct board *board, const struct board_entry *entry) {
    return (size_t)(entry - board->entries);
}

struct board_entry *board_find(struct board *board, const char *name, size_t length,
                               enum board_find_error *error) {
    if (length == 0) {
        *error = board->count == 1 ? BOARD_FOUND : BOARD_NAME_NEEDED;
        return board->count == 1 ? &board->entries[0] : NULL;
    }
    for (size_t i = 0; i < board->count; i++) {
        const char *known = board->entries[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *error = BOARD_FOUND;
            return &board->entries[i];
        }
    }
    *error = BOARD_UNKNOWN_ELECTION;
    return NULL;
}

static struct answer answer_now(struct board *board, struct board_entry *entry) {
    int64_t doubted_before_ns = entry->handouts.doubted_ns;
    struct answer answer = view_answer(&entry->view, clock_now(), &entry->handouts);
    bool doubted = entry->handouts.doubted_ns != doubted_before_ns;
    /* A view with a latch in it comes from a core that knows already. */
    if (doubted && entry->view.lease.latched_ns == 0 && board->doubted != NULL) {
        board->doubted(board->context, index_of(board, entry));
    }
    return answer;
}

struct answer board_answer(struct board *board, struct board_entry *entry) {
    struct answer answer = answer_now(board, entry);
    int64_t until_ns = answer.deadline_ns - answer.valid_ns + board->unmeasured_ns;
    if (answer.leader && until_ns > entry->handouts.until_ns) {
        entry->handouts.until_ns = until_ns;
    }
    return answer;
}

struct answer board_answer_app(struct board *board, struct board_entry *entry) {
    int64_t others_ns = entry->handouts.until_ns;
    entry->handouts.until_ns = entry->handouts.app_until_ns;
    struct answer answer = answer_now(board, entry);
    entry->handouts.app_until_ns = entry->handouts.until_ns;
    entry->handouts.until_ns = others_ns;
    return answer;
}

const char *board_holder(const struct board *board, const struct board_entry *entry,
                         const struct answer *answer) {
    if (answer->leader) {
        return board->identity;
    }
    return answer->state == STATE_FOLLOWER ? entry->view.holder : "";
}

int64_t board_holder_since_ms(const struct board *board, const struct board_entry *entry,
                              const struct answer *answer) {
    if (answer->leader) {
        return entry->view.granted_ms;
    }
    return board_holder(board, entry, answer)[0] != '\0' ? entry->view.holder_since_ms : 0;
}

/* What is worth a sentence beyond the names of state and reason. */
static const char *const reason_details[REASON_COUNT] = {
    [REASON_STARTING] = "the store has not answered yet",
    [REASON_FOREIGN_VALUE] = "the lock holds something that gavel did not write: it is left alone",
    [REASON_DEADLINE] = "the lease ran out before the store confirmed it",
    [REASON_STORE_UNREACHABLE] = "the store does not answer",
    [REASON_STORE_REFUSED] = "the store answers with an error",
    [REASON_APP_GONE] = "the attached application has ended",
    [REASON_APP_HUNG] = "the attached application has missed its beat (--app-timeout)",
    [REASON_APP_UNHEALTHY] = "the application does not answer its check (--app-check)",
    [REASON_CLOCK_STEP] = "the wall clock ran past the lease: the next renewal decides",
};

static void pending_detail(const struct view *view, char *text, size_t size) {
    const char *why = prior_doubt_text(view->doubt);
    int64_t left_ns = view->wait_until_ns - clock_now().boot_ns;
    if (left_ns > 0) {
        snprintf(text, size, "waits %.1f s more: %s", (double)left_ns / (double)NS_PER_S, why);
    } else {
        snprintf(text, size, "the wait is over, one more renewal has to confirm the lock");
    }
}

void board_set_problem(struct board_entry *entry, const char *text) {
    free(entry->problem);
    entry->problem = NULL;
    if (text[0] == '\0') {
        return;
    }
    entry->problem = memory_text_part(text, BOARD_PROBLEM_MAX);
    for (char *at = entry->problem; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            *at = '?';
        }
    }
}

static const char *words_for(const struct board_entry *entry, const struct answer *answer) {
    if (answer->state == STATE_RESIGNING) {
        return "keeps the lock until no reader can still trust an earlier answer";
    }
    if (answer->leader) {
        return entry->problem != NULL ? "the last renewal was not confirmed" : NULL;
    }
    return (size_t)answer->reason < REASON_COUNT ? reason_details[answer->reason] : NULL;
}

void board_detail(const struct board_entry *entry, const struct answer *answer, char *text,
                  size_t size) {
    if (answer->state == STATE_PENDING && entry->problem == NULL) {
        pending_detail(&entry->view, text, size);
        return;
    }
    const char *words = words_for(entry, answer);
    bool both = words != NULL && entry->problem != NULL;
    snprintf(text, size, "%s%s%s", words == NULL ? "" : words, both ? ": " : "",
             entry->problem == NULL ? "" : entry->problem);
}

static void link_in(struct board_observer **head, struct board_observer *observer) {
    observer->next = *head;
    observer->link = head;
    if (*head != NULL) {
        (*head)->link = &observer->next;
    }
    *head = observer;
}

void board_observe(struct board *board, struct board_observer *observer) {
    link_in(&board->observers, observer);
}

void board_unobserve(struct board_observer *observer) {
    if (observer->link == NULL) {
        return;
    }
    *observer->link = observer->next;
    if (observer->next != NULL) {
        observer->next->link = observer->link;
    }
    observer->next = NULL;
    observer->link = NULL;
}

/* Observers may leave, each other too, and join while they are told: those still to be told sit
 * in a list of their own. */
static void tell_observers(struct board *board, struct board_entry *entry) {
    struct board_observer *waiting = board->observers;
    if (waiting != NULL) {
        waiting->link = &waiting;
    }
    board->observers = NULL;
    while (waiting != NULL) {
        struct board_observer *observer = waiting;
        board_unobserve(observer);
        link_in(&board->observers, observer);
        observer->changed(observer, entry);
    }
}

struct handouts board_handouts(const struct board *board, const struct board_entry *entry,
                               struct instant now) {
    struct handouts handouts = entry->handouts;
    int64_t until_ns = board->pages != NULL
                           ? pages_readable_until_ns(board->pages, index_of(board, entry), now)
                           : 0;
    if (until_ns > handouts.until_ns) {
        handouts.until_ns = until_ns;
    }
    return handouts;
}

void board_publish(struct board *board, struct board_entry *entry, const struct view *view,
                   bool changed) {
    if (board->pages != NULL) {
        pages_show(board->pages, index_of(board, entry), view, entry->attached, &entry->handouts);
    }
    entry->view = *view;
    if (changed) {
        tell_observers(board, entry);
    }
}
