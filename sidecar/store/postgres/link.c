#include "store/postgres/link.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libuv's handle for one socket. libpq may replace the socket in each step of connecting, often by
 * one with the same number, so a handle lives for one step. */
struct pg_watch {
    uv_poll_t poll;
    struct pg_link *link; /* NULL: given up */
    struct store_lives *lives;
};

static void on_socket(uv_poll_t *poll, int status, int events);

static void on_watch_closed(uv_handle_t *handle) {
    struct pg_watch *watch = handle->data;
    struct store_lives *lives = watch->lives;
    free(watch);
    store_lives_end(lives);
}

static void unwatch(struct pg_link *link) {
    if (link->watch != NULL) {
        link->watch->link = NULL;
        uv_close((uv_handle_t *)&link->watch->poll, on_watch_closed);
        link->watch = NULL;
    }
}

static bool watch_socket(struct pg_link *link, int events) {
    if (link->watch == NULL) {
        struct pg_watch *watch = memory_zeroed(1, sizeof *watch);
        int fd = PQsocket(link->conn);
        if (fd < 0 || uv_poll_init(link->loop, &watch->poll, fd) != 0) {
            free(watch);
            return false;
        }
        watch->poll.data = watch;
        watch->link = link;
        watch->lives = link->lives;
        link->watch = watch;
        store_lives_begin(link->lives);
    }
    return uv_poll_start(&link->watch->poll, events, on_socket) == 0;
}

static void clear_results(struct pg_link *link) {
    for (size_t i = 0; i < link->result_count; i++) {
        PQclear(link->results[i]);
    }
    link->result_count = 0;
    memset(&link->answers, 0, sizeof link->answers);
}

void pg_link_drop(struct pg_link *link) {
    unwatch(link); /* before libpq closes the socket */
    clear_results(link);
    if (link->conn != NULL) {
        PQfinish(link->conn);
        link->conn = NULL;
    }
    link->state = PG_LINK_DOWN;
    link->generation++;
}

/* The connection is of no use any more. */
/* A server may quote what it was sent. */
static void hide_password(const struct pg_link *link, char *text) {
    const char *password = PQpass(link->conn);
    size_t length = password != NULL ? strlen(password) : 0;
    for (char *at = text; length >= 3 && (at = strstr(at, password)) != NULL; at += length) {
        memset(at, '*', length);
    }
}

static void fail(struct pg_link *link) {
    char sqlstate[PG_SQLSTATE] = "";
    char words[PG_TEXT - 8];
    char text[PG_TEXT];
    (void)pg_failure_read(PQerrorMessage(link->conn), sqlstate, words, sizeof words);
    if (sqlstate[0] == '\0' && link->last_state[0] != '\0') {
        memcpy(sqlstate, link->last_state, sizeof sqlstate);
        pg_text(words, sizeof words, link->last_words);
    }
    if (link->state == PG_LINK_CONNECTING && PQconnectionNeedsPassword(link->conn)) {
        memcpy(sqlstate, "28P01", sizeof sqlstate);
        pg_text(words, sizeof words, "the server wants a password, and none was found");
    }
    const char *fix = pg_failure_fix(sqlstate);
    enum pg_failure failure = pg_failure_of(sqlstate);
    if (link->state == PG_LINK_CONNECTING && sqlstate[0] == '\0') {
        failure = pg_failure_of_words(words, &fix);
    }
    if (words[0] == '\0') {
        pg_text(words, sizeof words, "the server closed the connection");
    }
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", sqlstate, sqlstate[0] != '\0' ? ": " : "",
                   words, fix[0] != '\0' ? ": " : "", fix);
    hide_password(link, text);
    pg_link_drop(link);
    link->events->down(link->context, failure, text);
}

/* libpq would print notices to stderr. Called from inside libpq: only takes notes. */
static void on_notice(void *context, const PGresult *notice) {
    struct pg_link *link = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    if (severity != NULL && strcmp(severity, "WARNING") == 0) {
        link->answers.warned = true;
    } else if (severity != NULL && sqlstate != NULL &&
               (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)) {
        pg_text(link->last_state, sizeof link->last_state, sqlstate);
        pg_text(link->last_words, sizeof link->last_words,
                PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY));
    }
}

static void connect_step(struct pg_link *link) {
    unwatch(link);
    switch (PQconnectPoll(link->conn)) {
    case PGRES_POLLING_READING:
        if (watch_socket(link, UV_READABLE)) {
            return;
        }
        break;
    case PGRES_POLLING_WRITING:
        if (watch_socket(link, UV_WRITABLE)) {
            return;
        }
        break;
    case PGRES_POLLING_OK:
        if (PQsetnonblocking(link->conn, 1) == 0 && watch_socket(link, UV_READABLE)) {
            link->state = PG_LINK_READY;
            if (link->events->opened != NULL) {
                link->events->opened(link->context);
            }
            return;
        }
        break;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
        break;
    }
    fail(link);
}

static void note_error(struct pg_link *link, const PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    struct pg_answers *answers = &link->answers;
    char line[PG_TEXT - 8];
    if (words == NULL) {
        words = PQresultErrorMessage(result);
    }
    if (severity != NULL && strcmp(severity, "ERROR") != 0 && sqlstate != NULL) {
        pg_text(link->last_state, sizeof link->last_state, sqlstate);
        pg_text(link->last_words, sizeof link->last_words, words);
    }
    if (answers->failed) {
        return; /* the first one tells */
    }
    pg_text(line, sizeof line, words);
    answers->failed = true;
    answers->failure = pg_failure_of(sqlstate);
    pg_text(answers->sqlstate, sizeof answers->sqlstate, sqlstate);
    (void)snprintf(answers->text, sizeof answers->text, "%s%s%s", answers->sqlstate,
                   answers->sqlstate[0] != '\0' ? ": " : "", line);
    hide_password(link, answers->text);
}

/* False: an answer to COPY, which nobody sent; libpq would repeat it for ever. */
static bool take_result(struct pg_link *link, PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (good && link->result_count < PG_RESULTS_MAX) {
        link->results[link->result_count++] = result;
        return true;
    }
    bool copy = status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
    if (copy) {
        pg_text(link->last_state, sizeof link->last_state, "08P01");
        pg_text(link->last_words, sizeof link->last_words, "the server answers to COPY, unasked");
    } else if (!good) {
        note_error(link, result);
    }
    PQclear(result);
    return !copy;
}

/* The whole message is answered. */
static void finish_message(struct pg_link *link) {
    struct pg_answers answers = link->answers;
    PGresult *results[PG_RESULTS_MAX];
    size_t count = link->result_count;
    memcpy(results, link->results, sizeof results);
    link->result_count = 0;
    memset(&link->answers, 0, sizeof link->answers);
    link->state = PG_LINK_READY;
    for (size_t i = 0; i < count; i++) {
        answers.list[i] = results[i];
    }
    answers.count = count;
    link->events->answered(link->context, &answers);
    for (size_t i = 0; i < count; i++) {
        PQclear(results[i]);
    }
}

/* False: the connection is not the one it was, after a callback. */
static bool take_notifications(struct pg_link *link) {
    unsigned generation = link->generation;
    PGnotify *notification;
    while (link->generation == generation && (notification = PQnotifies(link->conn)) != NULL) {
        if (link->events->notified != NULL) {
            link->events->notified(link->context, notification->extra);
        }
        PQfreemem(notification);
    }
    return link->generation == generation;
}

/* What came before the end may tell why. */
static void read_last_words(struct pg_link *link) {
    PGresult *result;
    while (PQisBusy(link->conn) == 0 && (result = PQgetResult(link->conn)) != NULL &&
           take_result(link, result)) {
    }
}

static void data_step(struct pg_link *link) {
    if (PQconsumeInput(link->conn) == 0) {
        read_last_words(link);
        fail(link);
        return;
    }
    unsigned generation = link->generation;
    while (link->generation == generation && link->state == PG_LINK_BUSY &&
           PQisBusy(link->conn) == 0) {
        PGresult *result = PQgetResult(link->conn);
        if (result != NULL && !take_result(link, result)) {
            fail(link);
            return;
        }
        if (result != NULL) {
            continue;
        }
        if (PQstatus(link->conn) == CONNECTION_BAD) {
            break;
        }
        finish_message(link);
    }
    if (link->generation != generation) {
        return;
    }
    if (link->state == PG_LINK_READY) {
        (void)PQisBusy(link->conn); /* reads notices and the server's last words */
    }
    if (!take_notifications(link)) {
        return;
    }
    int left = PQstatus(link->conn) == CONNECTION_BAD ? -1 : PQflush(link->conn);
    if (left < 0 || !watch_socket(link, UV_READABLE | (left > 0 ? UV_WRITABLE : 0))) {
        fail(link);
    }
}

static void on_socket(uv_poll_t *poll, int status, int events) {
    const struct pg_watch *watch = poll->data;
    struct pg_link *link = watch->link;
    (void)status; /* libpq finds out for itself what is wrong */
    (void)events;
    if (link == NULL) {
        return;
    }
    if (link->state == PG_LINK_CONNECTING) {
        connect_step(link);
    } else {
        data_step(link);
    }
}

void pg_link_init(struct pg_link *link, uv_loop_t *loop, struct store_lives *lives,
                  const struct pg_link_events *events, void *context) {
    memset(link, 0, sizeof *link);
    link->loop = loop;
    link->lives = lives;
    link->events = events;
    link->context = context;
}

bool pg_link_open(struct pg_link *link, const char *const *names, const char *const *values,
                  enum pg_failure *failure, char text[PG_TEXT]) {
    link->last_state[0] = '\0';
    link->last_words[0] = '\0';
    link->conn = PQconnectStartParams(names, values, 1);
    if (link->conn == NULL) {
        abort(); /* out of memory */
    }
    (void)PQsetErrorVerbosity(link->conn, PQERRORS_VERBOSE); /* it names the SQLSTATE */
    (void)PQsetNoticeReceiver(link->conn, on_notice, link);
    link->state = PG_LINK_CONNECTING;
    if (PQstatus(link->conn) == CONNECTION_BAD || !watch_socket(link, UV_WRITABLE)) {
        const char *fix;
        char sqlstate[PG_SQLSTATE];
        (void)pg_failure_read(PQerrorMessage(link->conn), sqlstate, text, PG_TEXT);
        *failure = pg_failure_of_words(text, &fix);
        pg_link_drop(link);
        return false;
    }
    return true;
}

bool pg_link_send(struct pg_link *link, const char *sql) {
    if (link->state != PG_LINK_READY) {
        return false;
    }
    clear_results(link);
    link->sent = clock_now();
    link->state = PG_LINK_BUSY;
    if (PQsendQuery(link->conn, sql) != 1) {
        return false;
    }
    int left = PQflush(link->conn);
    return left >= 0 && watch_socket(link, UV_READABLE | (left > 0 ? UV_WRITABLE : 0));
}
