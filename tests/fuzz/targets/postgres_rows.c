/* What a PostgreSQL server may answer: the first byte says which request is under way, the next
 * ones what was held before, then come results, a cell a line: ones that this sidecar knows, with
 * any values in any shape. One request is answered at most once, and "yes" is said only where the
 * lock was seen to be ours and a token is there. */
#include "base/clock.h"
#include "store/postgres/parts.h"
#include "store/postgres/postgres.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static const char *const columns[] = {
    "key",     "own",        "other",  "application", "namespace",
    "name",    "token",      "nonce",  "holder",      "longest_ttl_ms",
    "backend", "granted_ms", "minted", "prior",       "raised",
    "row",     "held",       "here",   "standbys",    "commit",
    "marked",  "beaten",     "tried",  "yes",         "unlocked",
    "fact"};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* The rest of the input. */
struct input {
    const uint8_t *data;
    size_t size;
};

static unsigned take_byte(struct input *input) {
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

/* Up to the next end of a line. */
static size_t take_text(struct input *input, const char **text) {
    const uint8_t *end = input->size > 0 ? memchr(input->data, '\n', input->size) : NULL;
    size_t length = end != NULL ? (size_t)(end - input->data) : input->size;
    *text = (const char *)input->data;
    input->data += length;
    input->size -= length;
    (void)take_byte(input);
    return length;
}

static PGresult *take_result(struct input *input) {
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc descriptions[16] = {{0}};
    int width = 1 + (int)(take_byte(input) % 15);
    unsigned first = take_byte(input);
    require(result != NULL);
    for (int i = 0; i < width; i++) {
        descriptions[i].name = (char *)(uintptr_t)columns[(first + (unsigned)i) % COLUMNS];
    }
    require(PQsetResultAttrs(result, width, descriptions) == 1);
    for (int i = 0; i < width; i++) {
        const char *text = "";
        char cell[256] = "";
        size_t length = take_text(input, &text);
        length = length < sizeof cell - 1 ? length : sizeof cell - 1;
        if (length > 0) {
            memcpy(cell, text, length);
        }
        length = strlen(cell); /* a server's text has no NUL in it */
        require(PQsetvalue(result, 0, i, cell, length == 1 && cell[0] == '~' ? -1 : (int)length));
    }
    return result;
}

struct heard {
    struct pg_store *store;
    unsigned answers;
};

static void on_event(void *context, const struct store_event *event) {
    struct heard *heard = context;
    const struct store_reply *reply = &event->reply;
    heard->answers += event->type != STORE_LOST ? 1 : 0;
    require(memchr(reply->holder, '\0', sizeof reply->holder) != NULL);
    require(memchr(reply->server, '\0', sizeof reply->server) != NULL);
    require(memchr(event->text, '\0', sizeof event->text) != NULL);
    require(reply->outcome != OUTCOME_YES || reply->prior != PRIOR_END);
    if (event->type == STORE_ACQUIRED && reply->outcome == OUTCOME_YES) {
        const struct pg_grant *grant = &heard->store->seats[0].grant;
        require(grant->held && grant->minted && grant->token == reply->token);
    }
}

/* The loop never turns: what the store would do next is not waited for. */
static void play(struct pg_store *store, struct heard *heard, struct input *input) {
    struct pg_seat *seat = &store->seats[0];
    struct pg_answers answers = {.failed = false};
    unsigned kind = take_byte(input);
    unsigned before = take_byte(input);
    seat->op.type = (enum store_event_type)(kind % 3);
    seat->op.request.take = (kind & 4) != 0;
    seat->op.request.raise_token = (kind & 8) != 0;
    seat->op.request.clean = (kind & 16) != 0;
    seat->op.request.token = before;
    seat->op.request.server[0] = (before & 1) != 0 ? 's' : '\0';
    seat->grant.held = (before & 2) != 0;
    seat->grant.minted = (before & 4) != 0;
    seat->grant.token = 17;
    store->sessions[0].up = true;
    pg_flow_begin(store, 0);
    for (int step = 0; step < 8 && heard->answers == 0 && input->size > 0; step++) {
        PGresult *result = take_result(input);
        PGresult *last = PQmakeEmptyPGresult(NULL, PGRES_COMMAND_OK);
        unsigned how = take_byte(input);
        require(last != NULL);
        strcpy(PQcmdStatus(last), (how & 1) != 0 ? "COMMIT" : "ROLLBACK");
        answers = (struct pg_answers){.failed = (how & 2) != 0, .warned = (how & 4) != 0};
        answers.list[answers.count++] = result;
        answers.list[answers.count++] = last;
        struct pg_entry entry = {.seat = 0, .work = seat->op.lock_work};
        static const char *const yes[] = {"t", "f", "null", ""};
        bool locks = seat->op.stage == PG_STAGE_LOCK;
        seat->op.stage = locks ? PG_STAGE_LOCKING : PG_STAGE_ROWING;
        if (locks && answers.failed) {
            pg_flow_lock_failed(store, &entry, yes[how >> 4 & 3], &answers);
        } else if (locks) {
            pg_flow_locked(store, &entry, yes[how >> 4 & 3], result, 0);
        } else {
            pg_flow_rowed(store, 0, seat->op.row_work, &answers);
        }
        PQclear(result);
        PQclear(last);
        require(heard->answers <= 1);
        if (!store->sessions[0].up) {
            break;
        }
    }
}

static void on_closed(void *context) {
    (void)context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const elections[] = {"billing"};
    uv_loop_t loop;
    struct store_status status = {.up = false};
    struct heard heard = {.answers = 0};
    struct error error = {""};
    require(uv_loop_init(&loop) == 0);
    log_setup(true, LOG_ERROR);
    struct store_setup setup = {.loop = &loop,
                                .url = "postgres://127.0.0.1:1/none",
                                .namespace_ = "default",
                                .identity = "pod-a",
                                .elections = elections,
                                .election_count = 1,
                                .ttl_ns = 10 * NS_PER_S,
                                .margin_ns = 2 * NS_PER_S,
                                .status = &status,
                                .on_event = on_event,
                                .context = &heard};
    struct store *store = postgres_store_ops.open(&setup, &error);
    require(store != NULL);
    heard.store = (struct pg_store *)store;
    play(heard.store, &heard, &(struct input){data, size});
    postgres_store_ops.close(store, on_closed, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    require(uv_loop_close(&loop) == 0);
    return 0;
}
