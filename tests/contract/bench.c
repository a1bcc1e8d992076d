#include "bench.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct contract_space contract_space;

static void violate(struct client *client, const char *what) {
    if (client->bench->violation[0] == '\0') {
        snprintf(client->bench->violation, sizeof client->bench->violation, "store %s: %s",
                 client->identity, what);
    }
}

void bench_check(struct bench *bench) {
    if (bench->violation[0] != '\0') {
        fail_msg("contract broken: %s", bench->violation);
    }
}

static void check_reply(struct client *client, const struct store_event *event) {
    const struct store_reply *reply = &event->reply;
    struct instant now = clock_now();
    struct instant called = client->called[event->election];

    if (event->type != client->expected[event->election]) {
        violate(client, "an answer of another kind");
    }
    bool nothing_sent = reply->outcome == OUTCOME_UNSURE && reply->sent.boot_ns == 0;
    if (!nothing_sent &&
        (reply->sent.boot_ns < called.boot_ns || reply->sent.boot_ns > now.boot_ns)) {
        violate(client, "sent is not between the call and the arrival");
    }
    if (reply->outcome == OUTCOME_UNSURE && event->text[0] == '\0') {
        violate(client, "unsure without a text");
    }
    if (reply->outcome == OUTCOME_YES && reply->token == 0 && event->type != STORE_RELEASED) {
        violate(client, "yes without a token");
    }
    if (reply->outcome != OUTCOME_UNSURE && !client->status.up) {
        violate(client, "answered, but status.up is false");
    }
    if (reply->reason == REASON_STORE_UNREACHABLE && client->status.up) {
        violate(client, "not answered, but status.up is true");
    }
    if (memchr(event->text, '\0', sizeof event->text) == NULL ||
        memchr(reply->holder, '\0', sizeof reply->holder) == NULL ||
        memchr(reply->server, '\0', sizeof reply->server) == NULL) {
        violate(client, "a text without an end");
    }
}

static void on_answer(struct client *client, const struct store_event *event) {
    if (!client->pending[event->election]) {
        violate(client, "a second answer to one operation");
        return;
    }
    check_reply(client, event);
    client->pending[event->election] = false;
    client->pending_count--;
    client->events[event->election] = *event;
}

static void on_event(void *context, const struct store_event *event) {
    struct client *client = context;

    if (client->in_call) {
        violate(client, "called back before the call returned");
    }
    if (client->closing) {
        violate(client, "an event after close");
        return;
    }
    if (event->election >= client->setup.election_count) {
        violate(client, "an election that does not exist");
        return;
    }
    if (event->type == STORE_WAKE) {
        client->wakes++;
        client->wake_clean = event->clean;
    } else if (event->type != STORE_LOST) {
        on_answer(client, event);
    }
    if (client->close_on_event) {
        client->close_on_event = false;
        client_start_close(client);
    }
}

static void on_closed(void *context) {
    struct client *client = context;

    if (client->closed) {
        violate(client, "closed twice");
    }
    if (client->in_close) {
        violate(client, "closed before close returned");
    }
    client->closed = true;
    client->store = NULL;
}

struct client *client_open(struct bench *bench, size_t index,
                           void (*change)(struct store_setup *setup)) {
    static const char *const identities[BENCH_CLIENTS] = {"one", "two", "three"};
    struct client *client = &bench->clients[index];
    struct error error = {""};

    assert_null(client->store);
    memset(client, 0, sizeof *client);
    client->bench = bench;
    snprintf(client->identity, sizeof client->identity, "%s", identities[index]);
    client->setup = (struct store_setup){
        .loop = &bench->loop,
        .url = contract_space.url,
        .namespace_ = bench->namespace_,
        .identity = client->identity,
        .elections = bench->name_list,
        .election_count = 4,
        .ttl_ns = BENCH_TTL_NS,
        .margin_ns = BENCH_TTL_NS / 5,
        .wait_replicas = contract_space.wait_replicas,
        .secrets = &contract_space.secrets,
        .tls = contract_space.tls,
        .status = &client->status,
        .on_event = on_event,
        .context = client,
    };
    if (change != NULL) {
        change(&client->setup);
    }
    client->store = contract_subject.ops->open(&client->setup, &error);
    if (client->store == NULL) {
        fail_msg("open: %s", error.text);
        return NULL;
    }
    assert_ptr_equal(client->store->ops, contract_subject.ops);
    return client;
}

void client_start_close(struct client *client) {
    client->closing = true;
    client->in_close = true;
    client->store->ops->close(client->store, on_closed, client);
    client->in_close = false;
}

void client_close(struct client *client) {
    if (client->store == NULL) {
        return;
    }
    if (!client->closing) {
        client_start_close(client);
    }
    bench_run(client->bench, 20 * NS_PER_S, &client->closed);
    if (!client->closed) {
        /* Its memory is still in use: nothing can go on from here. */
        fprintf(stderr, "store %s: never closed\n", client->identity);
        abort();
    }
}

static void on_watchdog(uv_timer_t *timer) {
    struct bench *bench = timer->data;
    bench->late = true;
}

bool bench_run(struct bench *bench, int64_t time_ns, const bool *until) {
    bench->late = false;
    uv_update_time(&bench->loop);
    uv_timer_start(&bench->watchdog, on_watchdog, (uint64_t)(time_ns / NS_PER_MS), 0);
    while (!bench->late && !(until != NULL && *until)) {
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&bench->watchdog);
    return until != NULL && *until;
}

void bench_freeze(struct bench *bench) {
    bench->frozen = true;
    contract_subject.freeze(&contract_space);
}

void bench_thaw(struct bench *bench) {
    if (bench->frozen) {
        bench->frozen = false;
        contract_subject.thaw(&contract_space);
    }
}

int bench_setup(void **state) {
    static unsigned count;
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL || uv_loop_init(&bench->loop) != 0) {
        abort();
    }
    /* The process id: a server that outlives this program must not know the namespace. */
    snprintf(bench->namespace_, sizeof bench->namespace_, "t%ld-%u", (long)uv_os_getpid(), count++);
    for (size_t i = 0; i < BENCH_ELECTIONS; i++) {
        snprintf(bench->names[i], sizeof bench->names[i], "e%zu", i);
        bench->name_list[i] = bench->names[i];
    }
    uv_timer_init(&bench->loop, &bench->watchdog);
    bench->watchdog.data = bench;
    contract_space.loop = &bench->loop;
    *state = bench;
    client_open(bench, 0, NULL);
    client_open(bench, 1, NULL);
    return 0;
}

int bench_teardown(void **state) {
    struct bench *bench = *state;

    bench_thaw(bench);
    for (size_t i = 0; i < BENCH_CLIENTS; i++) {
        client_close(&bench->clients[i]);
    }
    bench_check(bench);
    uv_close((uv_handle_t *)&bench->watchdog, NULL);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0); /* no handle was left behind */
    free(bench);
    return 0;
}

struct store_request request_new(struct bench *bench, size_t election) {
    struct store_request request = {.election = election,
                                    .wait_ns = BENCH_TTL_NS,
                                    .take = true,
                                    .timeout_ns = BENCH_TIMEOUT_NS};
    unsigned number = ++bench->next_nonce;
    memset(request.nonce, 0xa5, sizeof request.nonce); /* not text, not all zeros */
    memcpy(request.nonce, &number, sizeof number);
    return request;
}

struct store_request request_again(const struct store_request *request) {
    struct store_request again = {.election = request->election,
                                  .wait_ns = BENCH_TTL_NS,
                                  .take = true,
                                  .token = request->token,
                                  .timeout_ns = BENCH_TIMEOUT_NS};
    memcpy(again.nonce, request->nonce, sizeof again.nonce);
    memcpy(again.server, request->server, sizeof again.server);
    return again;
}

void client_issue(struct client *client, enum store_event_type type,
                  const struct store_request *request) {
    const struct store_ops *ops = client->store->ops;
    struct store_request passed = *request; /* the store must not keep the pointer */
    size_t election = request->election;

    assert_false(client->pending[election]);
    client->pending[election] = true;
    client->pending_count++;
    client->expected[election] = type;
    client->called[election] = clock_now();
    client->in_call = true;
    if (type == STORE_ACQUIRED) {
        ops->acquire(client->store, &passed);
    } else if (type == STORE_RENEWED) {
        ops->renew(client->store, &passed);
    } else {
        ops->release(client->store, &passed);
    }
    client->in_call = false;
    memset(&passed, 0xff, sizeof passed);
}

void client_wait(struct client *client) {
    struct bench *bench = client->bench;
    bench->late = false;
    uv_update_time(&bench->loop);
    uv_timer_start(&bench->watchdog, on_watchdog, 20000, 0);
    while (client->pending_count > 0 && !bench->late) {
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&bench->watchdog);
    bench_check(bench);
    assert_int_equal(client->pending_count, 0);
}

const struct store_event *client_do(struct client *client, enum store_event_type type,
                                    const struct store_request *request) {
    client_issue(client, type, request);
    client_wait(client);
    return &client->events[request->election];
}

const struct store_reply *client_expect(struct client *client, enum store_event_type type,
                                        const struct store_request *request, enum outcome outcome) {
    static const char *const names[] = {"unsure", "yes", "no"};
    const struct store_event *event = client_do(client, type, request);
    if (event->reply.outcome != outcome) {
        fail_msg("answer is %s (%s), expected %s", names[event->reply.outcome], event->text,
                 names[outcome]);
    }
    return &event->reply;
}

struct store_request client_take(struct client *client, size_t election, uint64_t *token) {
    struct store_request request = request_new(client->bench, election);
    const struct store_reply *reply = client_expect(client, STORE_ACQUIRED, &request, OUTCOME_YES);
    request.token = reply->token;
    memcpy(request.server, reply->server, sizeof request.server);
    if (token != NULL) {
        *token = reply->token;
    }
    return request;
}

void client_give(struct client *client, const struct store_request *taken, bool clean) {
    struct store_request request = request_again(taken);
    request.clean = clean;
    client_expect(client, STORE_RELEASED, &request, OUTCOME_YES);
}
