#include "publish/board.h"

#include "base/clock.h"
#include "publish/page.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

struct answer board_answer(struct board *board, struct board_entry *entry) {
    int64_t doubted_before_ns = entry->handouts.doubted_ns;
    struct answer answer = view_answer(&entry->view, clock_now(), &entry->handouts);
    bool doubted = entry->handouts.doubted_ns != doubted_before_ns;
    /* A view with a latch in it comes from a core that knows already. */
    if (doubted && entry->view.lease.latched_ns == 0 && board->doubted != NULL) {
        board->doubted(board->context, index_of(board, entry));
    }
    return answer;
}

struct answer board_answer_app(struct board *board, struct board_entry *entry) {
    int64_t others_ns = entry->handouts.until_ns;
    entry->handouts.until_ns = entry->handouts.app_until_ns;
    struct answer answer = board_answer(board, entry);
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

static const char *words_for(const struct board_entry *entry, const struct answer *answer) {
    if (answer->state == STATE_RESIGNING) {
        return "keeps the lock until no reader can still trust an earlier answer";
    }
    if (answer->leader) {
        return entry->problem[0] != '\0' ? "the last renewal was not confirmed" : NULL;
    }
    return (size_t)answer->reason < REASON_COUNT ? reason_details[answer->reason] : NULL;
}

void board_detail(const struct board_entry *entry, const struct answer *answer, char *text,
                  size_t size) {
    if (answer->state == STATE_PENDING && entry->problem[0] == '\0') {
        pending_detail(&entry->view, text, size);
        return;
    }
    const char *words = words_for(entry, answer);
    bool both = words != NULL && entry->problem[0] != '\0';
    snprintf(text, size, "%s%s%s", words == NULL ? "" : words, both ? ": " : "", entry->problem);
}

/* RFC 3339 in UTC with milliseconds. */
static void format_time(int64_t real_ms, char *text, size_t size) {
    int64_t second_ms = NS_PER_S / NS_PER_MS;
    time_t seconds = (time_t)(real_ms / second_ms);
    int milliseconds = (int)(real_ms % second_ms);
    struct tm utc;
    char date[32] = "";
    if (gmtime_r(&seconds, &utc) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    }
    snprintf(text, size, "%s.%03dZ", date, milliseconds);
}

static void *or_abort(void *memory) {
    if (memory == NULL) {
        abort(); /* out of memory: a crash lets the lease lapse, which is safe */
    }
    return memory;
}

static void set(json_t *object, const char *name, json_t *value) {
    if (json_object_set_new(object, name, or_abort(value)) != 0) {
        abort();
    }
}

static json_t *text_json(const char *text) {
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("?"); /* not UTF-8 */
}

static json_t *warnings_json(uint32_t warnings) {
    json_t *names = or_abort(json_array());
    for (unsigned bit = 0; bit < WARNING_COUNT; bit++) {
        if ((warnings & (UINT32_C(1) << bit)) != 0 &&
            json_array_append_new(names, json_string(warning_name(bit))) != 0) {
            abort();
        }
    }
    return names;
}

static void set_role(json_t *object, const struct board *board, const struct board_entry *entry,
                     const struct answer *answer) {
    char since[64];
    format_time(entry->view.since_real_ns / NS_PER_MS, since, sizeof since);
    set(object, "state", json_string(election_state_name(answer->state)));
    set(object, "leader", json_boolean(answer->leader));
    set(object, "token", answer->leader ? json_integer((json_int_t)answer->token) : json_null());
    set(object, "valid_for_ms", json_integer(answer->valid_ns / NS_PER_MS));
    set(object, "holder", text_json(board_holder(board, entry, answer)));
    set(object, "since", json_string(since));
    set(object, "reason", json_string(election_reason_name(answer->reason)));
}

static json_t *holder_since_json(const struct board *board, const struct board_entry *entry,
                                 const struct answer *answer) {
    int64_t since_ms = board_holder_since_ms(board, entry, answer);
    char since[64];
    if (since_ms == 0) {
        return json_null();
    }
    format_time(since_ms, since, sizeof since);
    return json_string(since);
}

char *board_json(const struct board *board, const struct board_entry *entry,
                 const struct answer *answer) {
    char lock_space[512] = "";
    if (board->lock_space != NULL) {
        board->lock_space(board->context, index_of(board, entry), lock_space, sizeof lock_space);
    }
    char detail[512];
    board_detail(entry, answer, detail, sizeof detail);

    /* The order is part of the interface: new members only at the end. */
    json_t *object = or_abort(json_object());
    set(object, "election", text_json(entry->name));
    set(object, "namespace", text_json(board->namespace_));
    set(object, "identity", text_json(board->identity));
    set_role(object, board, entry, answer);
    set(object, "warnings", warnings_json(entry->view.warnings | board->process_warnings));
    set(object, "index", json_integer((json_int_t)entry->view.index));
    set(object, "store", text_json(board->store_kind));
    set(object, "lock_space", text_json(lock_space));
    set(object, "mode", text_json(board->mode));
    set(object, "detail", text_json(detail));
    set(object, "holder_since", holder_since_json(board, entry, answer));
    char *text = or_abort(json_dumps(object, JSON_COMPACT));
    json_decref(object);
    return text;
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
