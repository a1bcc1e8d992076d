#include "contract.h"

#include "store/local/local.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A hung disk: jobs that fill libuv's thread pool until they are let go. */
#define POOL_THREADS "2"
#define BLOCKERS 2

struct place {
    char dir[128];
    uv_mutex_t mutex;
    uv_cond_t changed;
    unsigned blocking;
    bool frozen;
    uv_work_t blockers[BLOCKERS];
};

static bool start(struct contract_space *space, char *why, size_t why_size) {
    struct place *place = calloc(1, sizeof *place);
    const char *top = getenv("TMPDIR");
    if (place == NULL) {
        abort();
    }
    setenv("UV_THREADPOOL_SIZE", POOL_THREADS, 1); /* read when the first job is queued */
    snprintf(place->dir, sizeof place->dir, "%.100s/gavel-XXXXXX", top != NULL ? top : "/tmp");
    if (mkdtemp(place->dir) == NULL) {
        snprintf(why, why_size, "no folder can be made: %s", place->dir);
        free(place);
        return false;
    }
    uv_mutex_init(&place->mutex);
    uv_cond_init(&place->changed);
    /* The store makes the last part itself. */
    snprintf(space->url, sizeof space->url, "local:%s/locks", place->dir);
    space->data = place;
    return true;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void stop(struct contract_space *space) {
    struct place *place = space->data;
    nftw(place->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    uv_cond_destroy(&place->changed);
    uv_mutex_destroy(&place->mutex);
    free(place);
}

static void block(uv_work_t *work) {
    struct place *place = work->data;
    uv_mutex_lock(&place->mutex);
    place->blocking++;
    uv_cond_broadcast(&place->changed);
    while (place->frozen) {
        uv_cond_wait(&place->changed, &place->mutex);
    }
    place->blocking--;
    uv_cond_broadcast(&place->changed);
    uv_mutex_unlock(&place->mutex);
}

static void blocked(uv_work_t *work, int status) {
    (void)work;
    (void)status;
}

static void freeze(struct contract_space *space) {
    struct place *place = space->data;
    place->frozen = true;
    for (size_t i = 0; i < BLOCKERS; i++) {
        place->blockers[i].data = place;
        uv_queue_work(space->loop, &place->blockers[i], block, blocked);
    }
    uv_mutex_lock(&place->mutex);
    while (place->blocking < BLOCKERS) {
        uv_cond_wait(&place->changed, &place->mutex);
    }
    uv_mutex_unlock(&place->mutex);
}

static void thaw(struct contract_space *space) {
    struct place *place = space->data;
    uv_mutex_lock(&place->mutex);
    place->frozen = false;
    uv_cond_broadcast(&place->changed);
    while (place->blocking > 0) {
        uv_cond_wait(&place->changed, &place->mutex);
    }
    uv_mutex_unlock(&place->mutex);
}

const struct contract_subject contract_subject = {
    .name = "local",
    .ops = &local_store_ops,
    .start = start,
    .stop = stop,
    .freeze = freeze,
    .thaw = thaw,
    .wakes = true,
    .frees_on_close = true,
    .tells_since = true,
};
