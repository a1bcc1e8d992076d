#ifndef GAVEL_PUBLISH_BOARD_H
#define GAVEL_PUBLISH_BOARD_H

#include "election/view.h"

#include <stdbool.h>
#include <stddef.h>

#define BOARD_PROBLEM_MAX 159 /* bytes of it that are kept */

/*
 * The board: all elections of this process with their published views. The one place that the
 * socket, both HTTP listeners and the metrics read. Every answer is computed at the moment of
 * asking and noted in the entry's handouts. Loop thread only.
 */
struct board_entry {
    const char *name;
    struct view view;
    struct handouts handouts;
    bool draining; /* the process is ending */
    /* An application is attached, as the core knows it. */
    bool attached;
    /* What the store's last answer had to complain of, for people; empty: nothing. Written by the
     * composition root, never a secret. By board_set_problem(); heap, NULL when empty. */
    char *problem;
};

struct pages;

/* One who wants to hear of changes. Embed it; unlink before it goes. When told it may unlink itself
 * and others and link new ones, but not publish. */
struct board_observer {
    void (*changed)(struct board_observer *observer, struct board_entry *entry);
    struct board_observer *next, **link;
};

struct board {
    const char *namespace_;
    const char *identity;
    const char *store_kind; /* "redis" */
    const char *mode;       /* "correctness" */
    int64_t unmeasured_ns;  /* readers who measure no time act on a yes for so long, whatever
                             * validity came with it: it is noted as promised */
    struct board_entry *entries;
    size_t count;
    struct board_observer *observers;
    struct pages *pages;       /* the shared pages; NULL: none */
    uint32_t process_warnings; /* enum warning: shown with every election */
    /* Filled in by the composition root. */
    void (*lock_space)(void *context, size_t election, char *text, size_t size);
    /* A reader found CLOCK_REALTIME run out: the core has to hear of it soon. Called from within
     * board_answer(), perhaps several times until the core knows: note it, publish later. */
    void (*doubted)(void *context, size_t election);
    void *context;
};

/* Replaces what the store complains of, made fit for plain ASCII: half a character would spoil the
 * whole text. An empty text frees it. */
void board_set_problem(struct board_entry *entry, const char *text);

enum board_find_error { BOARD_FOUND, BOARD_UNKNOWN_ELECTION, BOARD_NAME_NEEDED };

/* The entry of that name (not ended by NUL). An empty name means the only election there is. */
struct board_entry *board_find(struct board *board, const char *name, size_t length,
                               enum board_find_error *error);

/* The answer of this moment: reads the clocks, notes what is promised. */
struct answer board_answer(struct board *board, struct board_entry *entry);

/* The same for the attached application: what it is promised ends when it is done. */
struct answer board_answer_app(struct board *board, struct board_entry *entry);

/* Who leads, for readers: this replica's identity only if answer->leader, another's name as
 * follower, empty when nobody is known. */
const char *board_holder(const struct board *board, const struct board_entry *entry,
                         const struct answer *answer);

/* Since when that one holds the lock, in milliseconds of 1970; 0: nobody is known, or not since
 * when. */
int64_t board_holder_since_ms(const struct board *board, const struct board_entry *entry,
                              const struct answer *answer);

/* The JSON of one election on one line, without a line end; `answer` must be of this moment.
 * Heap, to be freed with free(). */
char *board_json(const struct board *board, const struct board_entry *entry,
                 const struct answer *answer);

/* Words for people about the present state ("waits 8.3 s more: ..."), the store's own complaint
 * with them. */
void board_detail(const struct board_entry *entry, const struct answer *answer, char *text,
                  size_t size);

/* What was promised until now, with what can be read from the shared page at `now`. */
struct handouts board_handouts(const struct board *board, const struct board_entry *entry,
                               struct instant now);

/* Replaces an entry's view in one step, the shared page first; tells the observers when `changed`.
 */
void board_publish(struct board *board, struct board_entry *entry, const struct view *view,
                   bool changed);

void board_observe(struct board *board, struct board_observer *observer);
void board_unobserve(struct board_observer *observer);

#endif
