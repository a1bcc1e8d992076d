#include "store/local/local.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/local/lock.h"
#include "store/local/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS NS_PER_S /* the watch tells sooner what matters */
#define NOTE_EVERY_MS 60000
/* A lock goes just after its descriptor is said to be closed; one more look for where that took
 * longer. */
#define CLOSED_WAKE_MS 3
#define SECOND_WAKE_MS 20

/*
 * One election. A job in the thread pool owns `lock` and `job` while `working`; a request whose
 * time is over leaves its job behind, and the next request waits for that one.
 */
struct slot {
    struct local_store *store;
    size_t election;
    struct lock lock;
    struct lock_file_id seen; /* the lock file as last seen; zeroed: never */

    bool asked;   /* a request has not been answered yet */
    bool serving; /* the job under way is for that request */
    enum store_event_type type;
    struct store_request request;
    struct instant called;
    uv_timer_t timeout;

    bool working;
    struct lock_job job;
    uv_work_t work;

    uv_timer_t wake; /* the next WAKE */
    bool wake_clean;
    unsigned wakes_left;
};

struct local_store {
    struct store store;
    struct store_setup setup;
    struct place place;
    struct slot *slots;
    struct watch watch; /* of DIR/NS */
    struct log_limit note_limit;

    size_t users; /* handles and jobs that are not gone yet */
    bool closing;
    void (*closed)(void *context);
    void *closed_context;
};

static void release_user(struct local_store *store) {
    if (--store->users > 0 || !store->closing) {
        return;
    }
    void (*closed)(void *) = store->closed;
    void *context = store->closed_context;
    place_finish(&store->place);
    free(store->slots);
    free(store);
    closed(context);
}

/* Gives the one event of the request. The callback may close the store or ask anew. */
static void answer(struct slot *slot, const struct store_event *event) {
    struct local_store *store = slot->store;
    struct store_status *status = store->setup.status;

    slot->asked = false;
    slot->serving = false;
    uv_timer_stop(&slot->timeout);
    status->up = event->reply.reason != REASON_STORE_UNREACHABLE;
    snprintf(status->problem, sizeof status->problem, "%s",
             event->reply.outcome == OUTCOME_UNSURE ? event->text : "");
    store->setup.on_event(store->setup.context, event);
}

static void log_note(struct local_store *store, const struct slot *slot) {
    uint64_t suppressed;
    if (slot->job.note.text[0] != '\0' &&
        log_allow(&store->note_limit, NOTE_EVERY_MS, &suppressed)) {
        log_event(LOG_WARN, "store-file", LOG_TEXT("election", slot->lock.election),
                  LOG_TEXT("text", slot->job.note.text), LOG_NUMBER("suppressed", suppressed));
    }
}

static void run_job(struct slot *slot);

static void on_work(uv_work_t *work) {
    struct slot *slot = work->data;
    lock_work(&slot->lock, &slot->job);
}

static void on_worked(uv_work_t *work, int status) {
    struct slot *slot = work->data;
    struct local_store *store = slot->store;

    if (!store->closing) {
        watch_read(&store->watch); /* what this job did itself is among it */
    }
    slot->working = false;
    if (slot->lock.fd >= 0) {
        uv_timer_stop(&slot->wake); /* there is nothing to wait for */
    }
    if (store->closing) {
        lock_drop(&slot->lock);
        release_user(store);
        return;
    }
    store->users--; /* the handles are still there */
    if (status == 0) {
        log_note(store, slot);
        if (slot->job.seen.inode != 0) {
            slot->seen = slot->job.seen;
        }
        if (slot->serving) {
            struct store_event event = slot->job.event; /* the callback may start a new job */
            answer(slot, &event);
        }
    }
    if (slot->asked && !slot->working && !store->closing) {
        run_job(slot); /* it has waited for a job that was given up */
    }
}

static void run_job(struct slot *slot) {
    memset(&slot->job, 0, sizeof slot->job);
    slot->job.type = slot->type;
    slot->job.request = slot->request;
    slot->job.event.type = slot->type;
    slot->job.event.election = slot->election;
    slot->serving = true;
    slot->working = true;
    slot->store->users++;
    slot->work.data = slot;
    if (uv_queue_work(slot->store->setup.loop, &slot->work, on_work, on_worked) != 0) {
        abort(); /* fails only without a work function */
    }
}

static void on_timeout(uv_timer_t *timer) {
    struct slot *slot = timer->data;
    struct store_event event = {.type = slot->type, .election = slot->election};

    event.reply.reason = REASON_STORE_UNREACHABLE;
    event.reply.sent = slot->called;
    snprintf(event.text, sizeof event.text, "no answer from the disk within %" PRId64 " ms: %.100s",
             slot->request.timeout_ns / NS_PER_MS, slot->store->place.folder);
    if (slot->working) {
        (void)uv_cancel((uv_req_t *)&slot->work); /* may have begun already: it goes on */
    }
    answer(slot, &event);
}

static void start(struct store *base, enum store_event_type type,
                  const struct store_request *request) {
    struct local_store *store = (struct local_store *)base;
    struct slot *slot = &store->slots[request->election];
    if (slot->asked) {
        abort(); /* the contract: one at a time */
    }
    slot->asked = true;
    slot->type = type;
    slot->request = *request;
    slot->called = clock_now();
    uv_update_time(store->setup.loop);
    uv_timer_start(&slot->timeout, on_timeout,
                   (uint64_t)((request->timeout_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
    if (!slot->working) {
        run_job(slot);
    }
}

static void local_acquire(struct store *store, const struct store_request *request) {
    start(store, STORE_ACQUIRED, request);
}

static void local_renew(struct store *store, const struct store_request *request) {
    start(store, STORE_RENEWED, request);
}

static void local_release(struct store *store, const struct store_request *request) {
    start(store, STORE_RELEASED, request);
}

/* The slot whose lock file that is; NULL: another file. */
static struct slot *slot_of_file(struct local_store *store, const char *file) {
    size_t length = strlen(file);
    size_t ending = sizeof ".lock" - 1;
    if (length <= ending || strcmp(file + length - ending, ".lock") != 0) {
        return NULL;
    }
    length -= ending;
    for (size_t i = 0; i < store->setup.election_count; i++) {
        const char *name = store->slots[i].lock.election;
        if (strncmp(name, file, length) == 0 && name[length] == '\0') {
            return &store->slots[i];
        }
    }
    return NULL;
}

static void on_wake(uv_timer_t *timer) {
    struct slot *slot = timer->data;
    struct local_store *store = slot->store;
    struct store_event event = {
        .type = STORE_WAKE, .election = slot->election, .clean = slot->wake_clean};
    if (--slot->wakes_left > 0) {
        uv_timer_start(timer, on_wake, SECOND_WAKE_MS, 0);
    }
    store->setup.on_event(store->setup.context, &event);
}

/* The callback comes from the timer, where it may do anything. */
static void wake(struct slot *slot, bool clean, uint64_t after_ms, unsigned count) {
    bool given_back_by_us = slot->working && slot->job.type == STORE_RELEASED;
    bool held_by_us = !slot->working && slot->lock.fd >= 0;
    if (given_back_by_us || held_by_us) {
        return;
    }
    bool more_left = uv_is_active((uv_handle_t *)&slot->wake) && slot->wakes_left > count;
    slot->wake_clean = clean;
    slot->wakes_left = more_left ? slot->wakes_left : count;
    uv_update_time(slot->store->setup.loop);
    uv_timer_start(&slot->wake, on_wake, after_ms, 0);
}

static void on_news(void *context, const char *file, enum watch_news news) {
    struct local_store *store = context;
    if (news == WATCH_MISSED || news == WATCH_BLIND) {
        unsigned count = news == WATCH_MISSED ? 2 : 1;
        for (size_t i = 0; i < store->setup.election_count; i++) {
            wake(&store->slots[i], true, 0, count); /* it may have been with the mark */
        }
        return;
    }
    struct slot *slot = slot_of_file(store, file);
    if (slot == NULL) {
        return;
    }
    if (news == WATCH_TOUCHED) {
        wake(slot, true, 0, 2); /* only after the mark was written and the lock was free */
    } else if (uv_is_active((uv_handle_t *)&slot->wake) && slot->wake_clean) {
        slot->wakes_left = 2; /* mostly the close that follows a touch */
    } else {
        wake(slot, false, CLOSED_WAKE_MS, 2);
    }
}

static bool local_claims(const char *url) {
    return strncmp(url, PLACE_SCHEME, sizeof PLACE_SCHEME - 1) == 0;
}

static struct store *local_open(const struct store_setup *setup, struct error *error) {
    for (size_t i = 0; i < setup->election_count; i++) {
        if (!place_is_name(setup->elections[i])) {
            error_set(error, "local store: an election's name cannot be a file's");
            return NULL;
        }
    }
    struct local_store *store = memory_zeroed(1, sizeof *store);
    if (!place_init(&store->place, setup->url, setup->namespace_, error)) {
        free(store);
        return NULL;
    }
    store->store.ops = &local_store_ops;
    store->setup = *setup;
    store->slots = memory_zeroed(setup->election_count, sizeof *store->slots);
    for (size_t i = 0; i < setup->election_count; i++) {
        struct slot *slot = &store->slots[i];
        slot->store = store;
        slot->election = i;
        lock_init(&slot->lock, &store->place, &store->setup, setup->elections[i]);
        uv_timer_init(setup->loop, &slot->timeout);
        slot->timeout.data = slot;
        uv_timer_init(setup->loop, &slot->wake);
        slot->wake.data = slot;
        store->users += 2;
    }
    store->users++;
    watch_init(&store->watch, setup->loop, store->place.folder, on_news, store);
    return &store->store;
}

static void local_lock_space(const struct store *base, size_t election, char *text, size_t size) {
    const struct local_store *store = (const struct local_store *)base;
    const struct slot *slot = &store->slots[election];
    if (slot->seen.inode == 0) {
        text[0] = '\0';
        return;
    }
    snprintf(text, size, "%jx:%ju%s/%s.lock", (uintmax_t)slot->seen.device,
             (uintmax_t)slot->seen.inode, store->place.folder, slot->lock.election);
}

static void on_watch_closed(void *context) {
    release_user(context);
}

static void on_timer_closed(uv_handle_t *handle) {
    const struct slot *slot = handle->data;
    release_user(slot->store);
}

/* Locks are free when it returns, but for those of a job that is under way: when that ends. */
static void local_close(struct store *base, void (*closed)(void *context), void *context) {
    struct local_store *store = (struct local_store *)base;
    store->closing = true;
    store->closed = closed;
    store->closed_context = context;
    for (size_t i = 0; i < store->setup.election_count; i++) {
        struct slot *slot = &store->slots[i];
        if (slot->working) {
            (void)uv_cancel((uv_req_t *)&slot->work);
        } else {
            lock_drop(&slot->lock);
        }
        uv_close((uv_handle_t *)&slot->timeout, on_timer_closed);
        uv_close((uv_handle_t *)&slot->wake, on_timer_closed);
    }
    watch_finish(&store->watch, on_watch_closed);
}

const struct store_ops local_store_ops = {
    .kind = "local",
    .poll_ns = POLL_NS,
    .claims = local_claims,
    .check = place_check,
    .open = local_open,
    .acquire = local_acquire,
    .renew = local_renew,
    .release = local_release,
    .lock_space = local_lock_space,
    .close = local_close,
};
