/*
 * The order in which things reach the disk, what happens when one of them fails, and a disk that
 * hangs. The linker routes these calls of the store here (--wrap).
 */
#include "local_kit.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char trace[256];     /* what was done, in order */
static const char *failing; /* which of them fails; NULL: none */
static int failing_errno;
static const char *vanishing; /* this file is removed whenever somebody is about to lock it */
static unsigned vanish_count; /* so often */

static uv_mutex_t mutex;
static uv_cond_t changed;
static bool hang;        /* the next file sync does not return while this is true */
static unsigned hanging; /* how many are in it */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __real_fcntl(int fd, int command, void *argument);
int __wrap_fcntl(int fd, int command, void *argument);
int __real_futimens(int fd, const struct timespec *times);
int __wrap_futimens(int fd, const struct timespec *times);

/* Notes a call; false: it has to fail. */
static bool note(const char *what) {
    uv_mutex_lock(&mutex); /* the pool's threads come here too */
    size_t length = strlen(trace);
    snprintf(trace + length, sizeof trace - length, "%s ", what);
    uv_mutex_unlock(&mutex);
    if (failing != NULL && strcmp(failing, what) == 0) {
        errno = failing_errno;
        return false;
    }
    return true;
}

int __wrap_fsync(int fd) {
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    if (S_ISREG(status.st_mode)) {
        assert_true(status.st_size > 0); /* it was written before */
    }
    uv_mutex_lock(&mutex);
    if (hang) {
        hanging++;
        uv_cond_broadcast(&changed);
        while (hang) {
            uv_cond_wait(&changed, &mutex);
        }
        hanging--;
    }
    uv_mutex_unlock(&mutex);
    return note(S_ISREG(status.st_mode) ? "sync-file" : "sync-folder") ? __real_fsync(fd) : -1;
}

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return note("rename") ? __real_renameat(from_folder, from, to_folder, to) : -1;
}

int __wrap_fcntl(int fd, int command, void *argument) {
    const struct flock *lock = argument;
    if (command == F_OFD_SETLK && lock->l_type == F_WRLCK && vanish_count > 0) {
        vanish_count--;
        assert_int_equal(unlink(vanishing), 0);
    }
    if (command == F_OFD_SETLK && !note(lock->l_type == F_UNLCK ? "unlock" : "lock")) {
        return -1;
    }
    return __real_fcntl(fd, command, argument);
}

int __wrap_futimens(int fd, const struct timespec *times) {
    return note("touch") ? __real_futimens(fd, times) : -1;
}

static void reset(const char *fail, int error_number) {
    trace[0] = '\0';
    failing = fail;
    failing_errno = error_number;
}

static void grant_is_durable_before_it_is_told(void **state) {
    struct local_kit *kit = *state;
    reset(NULL, 0);
    kit_take(&kit->locks[0], 1);
    assert_string_equal(trace, "lock sync-file rename sync-folder ");
    reset(NULL, 0);
    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_YES);
    assert_string_equal(trace, ""); /* a plain renewal writes nothing */
}

static void raise_is_durable_before_it_is_told(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    reset(NULL, 0);
    struct store_request raise = kit_request(1);
    raise.raise_token = true;
    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, raise);
    kit_expect(&job, OUTCOME_YES);
    assert_string_equal(trace, "sync-file rename sync-folder ");
    assert_true(kit_record(kit).token == job.event.reply.token);
}

static void mark_is_durable_before_the_lock_is_free(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    reset(NULL, 0);
    kit_give(&kit->locks[0], 1);
    assert_string_equal(trace, "sync-file rename sync-folder unlock touch ");
    kit_take(&kit->locks[0], 2);
    reset(NULL, 0);
    struct lock_job job = kit_do(&kit->locks[0], STORE_RELEASED, kit_request(2));
    kit_expect(&job, OUTCOME_YES);
    assert_string_equal(trace, "unlock "); /* no mark, no word */
}

static const struct {
    const char *step;
    int error_number;
    const char *words;
} failures[] = {
    {"sync-file", ENOSPC, "no space left on device"},
    {"sync-file", EIO, "i/o error"},
    {"rename", EROFS, "read-only file system"},
    {"sync-folder", EIO, "i/o error"},
};
#define FAILURE_COUNT (sizeof failures / sizeof failures[0])

static void grant_that_cannot_be_recorded_is_not_given(void **state) {
    struct local_kit *kit = *state;
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        kit_take(&kit->locks[0], 1);
        kit_give(&kit->locks[0], 1);
        uint64_t before = kit_record(kit).token;
        reset(failures[i].step, failures[i].error_number);
        struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(2));
        reset(NULL, 0);
        kit_expect(&job, OUTCOME_UNSURE);
        assert_int_equal(job.event.reply.reason, REASON_STORE_REFUSED);
        assert_non_null(strstr(job.event.text, failures[i].words));
        assert_non_null(strstr(job.event.text, kit->place.folder));
        assert_int_equal(access(kit_path(kit, "a.tmp"), F_OK), -1);

        job = kit_take(&kit->locks[1], 3); /* the lock was given back */
        assert_true(job.event.reply.token > before);
        lock_drop(&kit->locks[1]);
    }
}

static void something_in_the_way_of_the_new_record(void **state) {
    struct local_kit *kit = *state;
    assert_int_equal(mkdir(kit_path(kit, "a.tmp"), 0700), 0);
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(1));
    kit_expect(&job, OUTCOME_UNSURE);
    assert_non_null(strstr(job.event.text, "a.tmp"));
    assert_int_equal(rmdir(kit_path(kit, "a.tmp")), 0);
    kit_write(kit, "a.tmp", "left by a crash", 15);
    kit_take(&kit->locks[1], 2);
}

static void failed_raise_keeps_the_grant_and_never_repeats_a_token(void **state) {
    struct local_kit *kit = *state;
    uint64_t token = kit_take(&kit->locks[0], 1).event.reply.token;
    struct store_request raise = kit_request(1);
    raise.raise_token = true;
    reset("sync-folder", EIO); /* the new record may or may not last */
    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, raise);
    reset(NULL, 0);
    kit_expect(&job, OUTCOME_UNSURE);
    uint64_t lost = kit_record(kit).token;
    assert_true(lost > token);

    job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_YES);
    assert_true(job.event.reply.token == token);
    /* A record that may hold another token gets no mark. */
    kit_give(&kit->locks[0], 1);
    job = kit_take(&kit->locks[0], 2);
    assert_int_equal(job.event.reply.prior, PRIOR_NONE);
    assert_true(job.event.reply.token > lost);
}

static void release_whose_mark_fails_frees_the_lock(void **state) {
    struct local_kit *kit = *state;
    for (unsigned i = 0; i < FAILURE_COUNT; i++) {
        kit_take(&kit->locks[0], 1);
        reset(failures[i].step, failures[i].error_number);
        struct lock_job job = kit_give(&kit->locks[0], 1);
        assert_null(strstr(trace, "touch"));
        reset(NULL, 0);
        assert_non_null(strstr(job.note.text, failures[i].words)); /* it is told */
        kit_take(&kit->locks[1], 2);
        lock_drop(&kit->locks[1]);
    }
}

static void locks_that_do_not_work_are_told(void **state) {
    struct local_kit *kit = *state;
    reset("lock", ENOLCK);
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(1));
    reset(NULL, 0);
    kit_expect(&job, OUTCOME_UNSURE);
    assert_non_null(strstr(job.event.text, "cannot lock"));
}

static void lock_on_a_file_that_was_just_replaced_does_not_count(void **state) {
    struct local_kit *kit = *state;
    struct trouble trouble;
    vanishing = kit_path(kit, "a.lock");
    vanish_count = 2;
    kit_take(&kit->locks[0], 1);
    assert_int_equal(vanish_count, 0);
    assert_int_equal(lock_file_match(kit->place.folder, "a", kit->locks[0].id, &trouble),
                     LOCK_FILE_SAME);
    kit_give(&kit->locks[0], 1);

    vanishing = kit_path(kit, "a.lock");
    vanish_count = 1000;
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(2));
    assert_true(vanish_count > 900); /* it gives up soon */
    vanish_count = 0;
    kit_expect(&job, OUTCOME_UNSURE);
    assert_non_null(strstr(job.event.text, "again and again"));
    assert_int_equal(kit->locks[0].fd, -1);
}

/* From here on: a disk that hangs, seen from the loop. */

struct desk {
    uv_loop_t loop;
    struct store_setup setup;
    struct store_status status;
    struct store *store;
    struct store_event event;
    unsigned events;
    bool closed;
};

static void on_event(void *context, const struct store_event *event) {
    struct desk *desk = context;
    if (event->type != STORE_WAKE) {
        desk->event = *event;
        desk->events++;
    }
}

static void on_closed(void *context) {
    struct desk *desk = context;
    desk->closed = true;
}

static void desk_open(struct desk *desk, const struct local_kit *kit) {
    static const char *const names[] = {"a"};
    struct error error = {""};
    memset(desk, 0, sizeof *desk);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    desk->setup = (struct store_setup){.loop = &desk->loop,
                                       .url = kit->url,
                                       .namespace_ = "default",
                                       .identity = "three",
                                       .elections = names,
                                       .election_count = 1,
                                       .ttl_ns = KIT_TTL_NS,
                                       .status = &desk->status,
                                       .on_event = on_event,
                                       .context = desk};
    desk->store = local_store_ops.open(&desk->setup, &error);
    assert_non_null(desk->store);
}

static void desk_close(struct desk *desk) {
    if (!desk->closed) {
        local_store_ops.close(desk->store, on_closed, desk);
    }
    uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_true(desk->closed);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
}

/* Issues an acquire and waits for its answer. */
static const struct store_reply *desk_acquire(struct desk *desk, unsigned nonce,
                                              int64_t timeout_ns) {
    struct store_request request = kit_request(nonce);
    unsigned before = desk->events;
    request.timeout_ns = timeout_ns;
    local_store_ops.acquire(desk->store, &request);
    while (desk->events == before) {
        uv_run(&desk->loop, UV_RUN_ONCE);
    }
    assert_int_equal(desk->events, before + 1);
    return &desk->event.reply;
}

static void hang_up(void) {
    uv_mutex_lock(&mutex);
    hang = true;
    uv_mutex_unlock(&mutex);
}

static unsigned count_hanging(void) {
    uv_mutex_lock(&mutex);
    unsigned count = hanging;
    uv_mutex_unlock(&mutex);
    return count;
}

static void let_go(void) {
    uv_mutex_lock(&mutex);
    hang = false;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&mutex);
}

/* Starts an acquire that hangs in the disk until its time is over; nothing was recorded before but
 * a clean end. */
static void desk_hang(struct desk *desk, struct local_kit *kit, unsigned nonce) {
    kit_take(&kit->locks[0], 100);
    kit_give(&kit->locks[0], 100);
    desk_open(desk, kit);
    hang_up();
    int64_t start_ns = clock_now().boot_ns;
    const struct store_reply *reply = desk_acquire(desk, nonce, 200 * NS_PER_MS);
    int64_t took_ns = clock_now().boot_ns - start_ns;
    assert_int_equal(reply->outcome, OUTCOME_UNSURE);
    assert_int_equal(reply->reason, REASON_STORE_UNREACHABLE);
    assert_true(took_ns >= 195 * NS_PER_MS && took_ns < 5 * NS_PER_S);
    assert_int_equal(count_hanging(), 1);
}

static void late_grant_stays_with_its_nonce(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    desk_hang(&desk, kit, 1);
    /* A retry waits for the job that hangs, and keeps its own time. */
    assert_int_equal(desk_acquire(&desk, 1, 100 * NS_PER_MS)->outcome, OUTCOME_UNSURE);
    let_go();
    const struct store_reply *reply = desk_acquire(&desk, 1, 5 * NS_PER_S);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_CLEAN); /* kept; its own record is not clean */
    assert_true(reply->token == kit_record(kit).token);
    desk_close(&desk);
}

static void late_grant_is_dropped_by_another_nonce(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    desk_hang(&desk, kit, 1);
    let_go();
    const struct store_reply *reply = desk_acquire(&desk, 2, 5 * NS_PER_S);
    assert_int_equal(reply->outcome, OUTCOME_YES);
    assert_int_equal(reply->prior, PRIOR_NONE);
    assert_int_equal(reply->doubt, DOUBT_UNCLEAN);
    desk_close(&desk);
}

static void closing_waits_for_a_disk_that_hangs(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    desk_hang(&desk, kit, 1);
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(2));
    kit_expect(&job, OUTCOME_NO); /* it has the lock already */
    local_store_ops.close(desk.store, on_closed, &desk);
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_false(desk.closed);
    let_go();
    uv_run(&desk.loop, UV_RUN_DEFAULT);
    assert_true(desk.closed);
    assert_int_equal(desk.events, 1);
    assert_int_equal(uv_loop_close(&desk.loop), 0);
    kit_take(&kit->locks[0], 3); /* nothing of it is left */
}

int main(void) {
    uv_mutex_init(&mutex);
    uv_cond_init(&changed);
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(grant_is_durable_before_it_is_told),
        LOCAL_TEST(raise_is_durable_before_it_is_told),
        LOCAL_TEST(mark_is_durable_before_the_lock_is_free),
        LOCAL_TEST(grant_that_cannot_be_recorded_is_not_given),
        LOCAL_TEST(something_in_the_way_of_the_new_record),
        LOCAL_TEST(failed_raise_keeps_the_grant_and_never_repeats_a_token),
        LOCAL_TEST(release_whose_mark_fails_frees_the_lock),
        LOCAL_TEST(locks_that_do_not_work_are_told),
        LOCAL_TEST(lock_on_a_file_that_was_just_replaced_does_not_count),
        LOCAL_TEST(late_grant_stays_with_its_nonce),
        LOCAL_TEST(late_grant_is_dropped_by_another_nonce),
        LOCAL_TEST(closing_waits_for_a_disk_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
