#include "store/fake/fake.h"

#include "base/clock.h"
#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "fake:"
#define FROZEN_POLL_MS 2

/* What a store has yet to hear of an election without having asked. */
struct notice {
    bool wake, clean, lost;
};

struct fake_store {
    struct store store;
    struct store_setup setup;
    struct fake_server *server;
    struct fake_store *next;
    struct fake_request *requests;
    struct notice *notices;
    uv_timer_t notify;
    unsigned handles;
    bool closing;
    void (*closed)(void *context);
    void *closed_context;
};

/* One request on its way: there, and back. It may outlive its timeout. */
struct fake_request {
    struct fake_store *store;
    struct fake_request *next, **link;
    struct store_request request;
    struct store_event event;
    uv_timer_t travel;
    uv_timer_t timeout;
    unsigned handles;
    bool arrived;
    bool answered;
    bool finished;
};

static uint64_t to_ms(int64_t time_ns) {
    return (uint64_t)((time_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static void maybe_closed(struct fake_store *store) {
    if (store->handles == 0 && store->requests == NULL) {
        void (*closed)(void *) = store->closed;
        void *context = store->closed_context;
        free(store->notices);
        free(store);
        closed(context);
    }
}

static void on_request_closed(uv_handle_t *handle) {
    struct fake_request *request = handle->data;
    struct fake_store *store = request->store;

    if (--request->handles > 0) {
        return;
    }
    *request->link = request->next;
    if (request->next != NULL) {
        request->next->link = request->link;
    }
    free(request);
    if (store->closing) {
        maybe_closed(store);
    }
}

/* Its memory goes in a later turn of the loop. */
static void finish(struct fake_request *request) {
    if (!request->finished) {
        request->finished = true;
        uv_close((uv_handle_t *)&request->travel, on_request_closed);
        uv_close((uv_handle_t *)&request->timeout, on_request_closed);
    }
}

/* Gives the one event. The callback may close the store. */
static void answer(struct fake_request *request) {
    struct fake_store *store = request->store;
    struct store_status *status = store->setup.status;
    struct store_event *event = &request->event;

    request->answered = true;
    if (status != NULL) {
        status->up = event->reply.reason != REASON_STORE_UNREACHABLE;
        snprintf(status->problem, sizeof status->problem, "%s", event->text);
    }
    store->setup.on_event(store->setup.context, event);
}

static void on_timeout(uv_timer_t *timer) {
    struct fake_request *request = timer->data;
    struct store_reply *reply = &request->event.reply;

    if (request->answered) {
        return;
    }
    struct instant sent = reply->sent;
    memset(reply, 0, sizeof *reply);
    reply->sent = sent;
    reply->reason = REASON_STORE_UNREACHABLE;
    snprintf(request->event.text, sizeof request->event.text, "no answer in time");
    if (!uv_is_active((uv_handle_t *)&request->travel)) {
        finish(request); /* nothing of it is under way */
    }
    answer(request);
}

static enum fake_fault next_fault(struct fake_server *server) {
    if (server->fault == FAKE_FINE || server->fault_count == 0) {
        return FAKE_FINE;
    }
    if (server->fault_count != UINT_MAX) {
        server->fault_count--;
    }
    return server->fault;
}

static void on_travelled(uv_timer_t *timer);

static void arrive(struct fake_request *request) {
    struct fake_server *server = request->store->server;
    if (server->frozen) {
        uv_timer_start(&request->travel, on_travelled, FROZEN_POLL_MS, 0);
        return;
    }
    enum fake_fault fault = next_fault(server);
    request->arrived = true;
    if (fault == FAKE_REFUSE) {
        request->event.reply.reason = REASON_STORE_REFUSED;
        snprintf(request->event.text, sizeof request->event.text, "refused, as the test wants");
    } else if (fault != FAKE_LOSE_REQUEST) {
        struct store_event event = request->event;
        server->requests++;
        fake_server_answer(server, event.type, &request->store->setup, &request->request, &event);
        if (!request->answered) {
            request->event = event;
        }
    }
    if (request->answered) {
        finish(request); /* too late: nobody waits for it */
    } else if (fault == FAKE_FINE || fault == FAKE_REFUSE) {
        uv_timer_start(&request->travel, on_travelled, to_ms(server->reply_delay_ns), 0);
    }
}

static void on_travelled(uv_timer_t *timer) {
    struct fake_request *request = timer->data;
    if (!request->arrived) {
        arrive(request);
        return;
    }
    finish(request);
    if (!request->answered) {
        answer(request);
    }
}

static void start(struct store *base, enum store_event_type type,
                  const struct store_request *asked) {
    struct fake_store *store = (struct fake_store *)base;
    struct fake_request *request = memory_zeroed(1, sizeof *request);

    request->store = store;
    request->request = *asked;
    request->event.type = type;
    request->event.election = asked->election;
    request->event.reply.sent = clock_now();
    request->next = store->requests;
    request->link = &store->requests;
    if (request->next != NULL) {
        request->next->link = &request->next;
    }
    store->requests = request;

    uv_update_time(store->setup.loop);
    uv_timer_init(store->setup.loop, &request->travel);
    uv_timer_init(store->setup.loop, &request->timeout);
    request->travel.data = request->timeout.data = request;
    request->handles = 2;
    uv_timer_start(&request->travel, on_travelled, to_ms(store->server->request_delay_ns), 0);
    uv_timer_start(&request->timeout, on_timeout, to_ms(asked->timeout_ns), 0);
}

static void fake_acquire(struct store *store, const struct store_request *request) {
    start(store, STORE_ACQUIRED, request);
}

static void fake_renew(struct store *store, const struct store_request *request) {
    start(store, STORE_RENEWED, request);
}

static void fake_release(struct store *store, const struct store_request *request) {
    start(store, STORE_RELEASED, request);
}

static void on_notify(uv_timer_t *timer) {
    struct fake_store *store = timer->data;
    for (size_t i = 0; i < store->setup.election_count && !store->closing; i++) {
        struct notice notice = store->notices[i];
        struct store_event event = {.election = i, .clean = notice.clean};
        memset(&store->notices[i], 0, sizeof notice);
        if (notice.wake) {
            event.type = STORE_WAKE;
            store->setup.on_event(store->setup.context, &event);
        }
        if (notice.lost && !store->closing) {
            event.type = STORE_LOST;
            event.reply.outcome = OUTCOME_NO;
            event.reply.reason = REASON_RENEWAL_REFUSED;
            event.reply.sent = clock_now();
            store->setup.on_event(store->setup.context, &event);
        }
    }
}

void fake_stores_notify(struct fake_server *server, const char *key, enum store_event_type type,
                        bool clean) {
    for (struct fake_store *store = server->stores; store != NULL; store = store->next) {
        for (size_t i = 0; i < store->setup.election_count; i++) {
            char own[sizeof server->locks->key];
            snprintf(own, sizeof own, "%s/%s", store->setup.namespace_, store->setup.elections[i]);
            if (strcmp(own, key) == 0) {
                store->notices[i].wake |= type == STORE_WAKE;
                store->notices[i].lost |= type == STORE_LOST;
                store->notices[i].clean = clean;
                uv_timer_start(&store->notify, on_notify, 0, 0);
            }
        }
    }
}

static bool fake_claims(const char *url) {
    return strncmp(url, SCHEME, sizeof SCHEME - 1) == 0;
}

static bool fake_check(const char *url, struct error *error) {
    if (!fake_claims(url) || url[sizeof SCHEME - 1] == '\0') {
        error_set(error, "write fake:NAME, the name of a fake server");
        return false;
    }
    return true;
}

static struct store *fake_open(const struct store_setup *setup, struct error *error) {
    if (!fake_check(setup->url, error)) {
        return NULL;
    }
    struct fake_server *server = fake_server_find(setup->url + sizeof SCHEME - 1);
    if (server == NULL) {
        error_set(error, "there is no such fake server");
        return NULL;
    }
    struct fake_store *store = memory_zeroed(1, sizeof *store);
    store->store.ops = &fake_store_ops;
    store->setup = *setup;
    store->server = server;
    store->notices = memory_zeroed(setup->election_count, sizeof *store->notices);
    store->next = server->stores;
    server->stores = store;
    uv_timer_init(setup->loop, &store->notify);
    store->notify.data = store;
    store->handles = 1;
    return &store->store;
}

static void fake_lock_space(const struct store *base, size_t election, char *text, size_t size) {
    const struct fake_store *store = (const struct fake_store *)base;
    snprintf(text, size, "%s/%s/%s", store->server->id, store->setup.namespace_,
             store->setup.elections[election]);
}

static void on_store_closed(uv_handle_t *handle) {
    struct fake_store *store = handle->data;
    store->handles--;
    maybe_closed(store);
}

static void fake_close(struct store *base, void (*closed)(void *context), void *context) {
    struct fake_store *store = (struct fake_store *)base;
    struct fake_store **link = &store->server->stores;

    while (*link != store) {
        link = &(*link)->next;
    }
    *link = store->next;
    store->closing = true;
    store->closed = closed;
    store->closed_context = context;
    for (struct fake_request *request = store->requests; request != NULL; request = request->next) {
        request->answered = true;
        finish(request);
    }
    uv_close((uv_handle_t *)&store->notify, on_store_closed);
}

const struct store_ops fake_store_ops = {
    .kind = "fake",
    .claims = fake_claims,
    .check = fake_check,
    .open = fake_open,
    .acquire = fake_acquire,
    .renew = fake_renew,
    .release = fake_release,
    .lock_space = fake_lock_space,
    .close = fake_close,
};
