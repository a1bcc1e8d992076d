#include "local_kit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int local_kit_setup(void **state) {
    struct local_kit *kit = calloc(1, sizeof *kit);
    struct error error = {""};
    static const char *const names[] = {"one", "two"};

    assert_non_null(kit);
    snprintf(kit->top, sizeof kit->top, "/tmp/gavel-local-XXXXXX");
    assert_non_null(mkdtemp(kit->top));
    snprintf(kit->url, sizeof kit->url, "local:%s/locks", kit->top);
    if (!place_init(&kit->place, kit->url, "default", &error)) {
        fail_msg("%s", error.text);
    }
    for (size_t i = 0; i < 2; i++) {
        kit->setups[i] = (struct store_setup){.identity = names[i], .ttl_ns = KIT_TTL_NS};
        lock_init(&kit->locks[i], &kit->place, &kit->setups[i], "a");
    }
    *state = kit;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

int local_kit_teardown(void **state) {
    struct local_kit *kit = *state;
    lock_drop(&kit->locks[0]);
    lock_drop(&kit->locks[1]);
    place_finish(&kit->place);
    nftw(kit->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(kit);
    return 0;
}

struct store_request kit_request(unsigned nonce) {
    struct store_request request = {.take = true, .timeout_ns = NS_PER_S};
    memcpy(request.nonce, &nonce, sizeof nonce);
    return request;
}

struct lock_job kit_do(struct lock *lock, enum store_event_type type,
                       struct store_request request) {
    struct lock_job job = {.type = type, .request = request};
    job.event.type = type;
    lock_work(lock, &job);
    return job;
}

void kit_expect(const struct lock_job *job, enum outcome outcome) {
    if (job->event.reply.outcome != outcome) {
        fail_msg("answer is %d (%s), expected %d", (int)job->event.reply.outcome, job->event.text,
                 (int)outcome);
    }
}

struct lock_job kit_take(struct lock *lock, unsigned nonce) {
    struct lock_job job = kit_do(lock, STORE_ACQUIRED, kit_request(nonce));
    kit_expect(&job, OUTCOME_YES);
    return job;
}

struct lock_job kit_give(struct lock *lock, unsigned nonce) {
    struct store_request request = kit_request(nonce);
    request.clean = true;
    request.token = lock->token;
    struct lock_job job = kit_do(lock, STORE_RELEASED, request);
    kit_expect(&job, OUTCOME_YES);
    return job;
}

const char *kit_path(const struct local_kit *kit, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/locks/default/%s", kit->top, name);
    return path;
}

void kit_write(const struct local_kit *kit, const char *name, const char *text, size_t length) {
    int fd = open(kit_path(kit, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    close(fd);
}

struct record kit_record(const struct local_kit *kit) {
    struct record record;
    struct trouble trouble = {""};
    int folder = open(kit_path(kit, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    struct place_files files = {folder, kit->place.folder, "a"};
    enum record_found found = record_read(&files, &record, &trouble);
    close(folder);
    if (found != RECORD_READ) {
        fail_msg("no record: %s", trouble.text);
    }
    return record;
}
