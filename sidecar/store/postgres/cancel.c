#include "store/postgres/parts.h"

#include "base/memory.h"

#include <stdlib.h>

struct pg_cancel {
    uv_work_t work;
    struct pg_store *store;
    PGcancel *cancel;
};

/* In a thread: it connects anew and waits. It looks no name up, and touches nothing of ours. */
static void on_work(uv_work_t *work) {
    const struct pg_cancel *cancel = work->data;
    char text[PG_TEXT];
    (void)PQcancel(cancel->cancel, text, sizeof text);
}

static void on_worked(uv_work_t *work, int status) {
    struct pg_cancel *cancel = work->data;
    struct pg_store *store = cancel->store;
    (void)status;
    store->rows.cancel = NULL;
    PQfreeCancel(cancel->cancel);
    free(cancel);
    store_lives_end(&store->lives);
}

void pg_cancel_start(struct pg_store *store, PGconn *conn) {
    if (store->rows.cancel != NULL || store->lives.closing) {
        return; /* one at a time: a server that is not there must not take all threads */
    }
    PGcancel *ticket = PQgetCancel(conn);
    if (ticket == NULL) {
        return;
    }
    struct pg_cancel *cancel = memory_zeroed(1, sizeof *cancel);
    cancel->work.data = cancel;
    cancel->store = store;
    cancel->cancel = ticket;
    store->rows.cancel = cancel;
    store_lives_begin(&store->lives);
    if (uv_queue_work(store->setup.loop, &cancel->work, on_work, on_worked) != 0) {
        abort(); /* fails only without a work function */
    }
}
