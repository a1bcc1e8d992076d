/*
 * What followers are told without asking, and what they are told where inotify does not work. The
 * linker routes these calls of the store here (--wrap).
 */
#include "local_desk.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUIET_MS 60 /* longer than all WAKEs after one event take */

static uv_cond_t changed;
static int init_errno;      /* inotify_init1() fails with this; 0: it works */
static int add_errno;       /* the same for inotify_add_watch() */
static bool hang;           /* inotify_init1() does not return while this is true */
static unsigned init_count; /* calls that began */
static unsigned watches;    /* made, ever */
static unsigned watch_lines;

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields,
                      size_t count);

int __wrap_inotify_init1(int flags) {
    uv_mutex_lock(&mutex);
    init_count++;
    while (hang) {
        uv_cond_wait(&changed, &mutex);
    }
    int error_number = init_errno;
    uv_mutex_unlock(&mutex);
    if (error_number != 0) {
        errno = error_number;
        return -1;
    }
    return __real_inotify_init1(flags);
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask) {
    uv_mutex_lock(&mutex);
    int error_number = add_errno;
    uv_mutex_unlock(&mutex);
    if (error_number != 0) {
        errno = error_number;
        return -1;
    }
    int wd = __real_inotify_add_watch(fd, path, mask);
    int kept = errno;
    uv_mutex_lock(&mutex);
    watches += wd >= 0 ? 1 : 0;
    uv_mutex_unlock(&mutex);
    errno = kept;
    return wd;
}

void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields,
                      size_t count) {
    (void)fields;
    (void)count;
    if (level == LOG_WARN && strcmp(event, "store-watch") == 0) {
        watch_lines++;
    }
}

static void set(int *error_number, int value) {
    uv_mutex_lock(&mutex);
    *error_number = value;
    uv_mutex_unlock(&mutex);
}

static pid_t start_holder(struct local_kit *kit) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        struct lock_job job = kit_do(&kit->locks[1], STORE_ACQUIRED, kit_request(9));
        byte = job.event.reply.outcome == OUTCOME_YES ? 'y' : 'n';
        if (write(ready[1], &byte, 1) == 1) {
            for (;;) {
                pause();
            }
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(byte, 'y');
    return pid;
}

static void killed_holder_is_told_at_once(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    pid_t pid = start_holder(kit);
    desk_open(&desk, kit);
    assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 1, 0), OUTCOME_NO);
    desk_expect_quiet(&desk, QUIET_MS);

    int64_t killed_ns = clock_now().boot_ns;
    assert_int_equal(kill(pid, SIGKILL), 0);
    desk_expect_wake(&desk, 100, false);
    if (desk_do(&desk, STORE_ACQUIRED, 1, 0) == OUTCOME_NO) {
        assert_true(desk_run(&desk, 100, &desk.wakes[0], 2)); /* the lock went late: once more */
        assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 1, 0), OUTCOME_YES);
    }
    assert_true(clock_now().boot_ns - killed_ns < 200 * NS_PER_MS);
    assert_int_equal(desk.wakes[1], 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    desk_expect_quiet(&desk, QUIET_MS); /* it is ours: nothing more to be told */
    desk_close(&desk);
}

/* The second WAKE is for a lock that was not free at the first. */
static void each_end_is_told_twice_and_no_more(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    kit_take(&kit->locks[0], 1);
    desk_open(&desk, kit);
    lock_drop(&kit->locks[0]);
    assert_true(desk_run(&desk, PATIENT_MS, &desk.wakes[0], 2));
    assert_false(desk.clean);
    desk_expect_quiet(&desk, QUIET_MS);
    desk_close(&desk);
}

static void looks_and_renewals_wake_nobody(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    kit_take(&kit->locks[0], 1);
    desk_open(&desk, kit);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 2, 0), OUTCOME_NO);
        struct lock_job job = kit_do(&kit->locks[1], STORE_ACQUIRED, kit_request(3));
        kit_expect(&job, OUTCOME_NO);
        job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
        kit_expect(&job, OUTCOME_YES);
    }
    desk_run(&desk, QUIET_MS, NULL, 0);
    assert_int_equal(desk.wakes[0], 0);
    kit_give(&kit->locks[0], 1);
    desk_expect_wake(&desk, 100, true);
    desk_close(&desk);
}

static void own_release_is_no_news(void **state) {
    struct local_kit *kit = *state;
    struct desk desk, other;
    desk_open(&desk, kit);
    desk_open(&other, kit);
    for (unsigned clean = 0; clean < 2; clean++) {
        assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 1 + clean, 0), OUTCOME_YES);
        uint64_t token = clean != 0 ? desk.answer.reply.token : 0;
        desk_expect_quiet(&other, QUIET_MS);
        assert_int_equal(desk_do(&desk, STORE_RELEASED, 1 + clean, token), OUTCOME_YES);
        desk_expect_wake(&other, 100, clean != 0);
        desk_expect_quiet(&desk, QUIET_MS);
        desk_run(&other, QUIET_MS, NULL, 0);
    }
    desk_close(&desk);
    desk_close(&other);
}

static void closed_store_is_told(void **state) {
    struct local_kit *kit = *state;
    struct desk desk, other;
    desk_open(&desk, kit);
    desk_open(&other, kit);
    assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 1, 0), OUTCOME_YES);
    desk_close(&desk);
    desk_expect_wake(&other, 100, false);
    assert_int_equal(desk_do(&other, STORE_ACQUIRED, 2, 0), OUTCOME_YES);
    desk_close(&other);
}

/* Ten WAKEs a second; one line in the log. */
static void expect_hints(struct desk *desk) {
    desk->wakes[0] = desk->wakes[1] = 0;
    int64_t begin_ns = clock_now().boot_ns;
    assert_true(desk_run(desk, PATIENT_MS, &desk->wakes[0], 6));
    int64_t took_ns = clock_now().boot_ns - begin_ns;
    assert_true(took_ns > 400 * NS_PER_MS && took_ns < 2000 * NS_PER_MS);
    assert_true(desk->wakes[1] >= 5);
    assert_true(desk->clean);
    assert_int_equal(watch_lines, 1);
}

/* It is tried again, and then the folder is watched. */
static void expect_watched_again(struct desk *desk, struct local_kit *kit, unsigned before) {
    assert_true(desk_run(desk, PATIENT_MS, &watches, before + 1));
    desk_run(desk, QUIET_MS, NULL, 0);
    desk_expect_quiet(desk, 350);
    lock_drop(&kit->locks[1]);
    desk_expect_wake(desk, 100, false);
}

static void without_inotify_there_are_hints(void **state) {
    struct local_kit *kit = *state;
    int *const failures[] = {&init_errno, &add_errno};
    for (unsigned i = 0; i < 2; i++) {
        struct desk desk;
        watch_lines = 0;
        set(failures[i], i == 0 ? EMFILE : ENOSPC);
        desk_open(&desk, kit);
        expect_hints(&desk);
        assert_int_equal(desk_do(&desk, STORE_ACQUIRED, 1, 0), OUTCOME_YES);
        desk.wakes[0] = desk.wakes[1] = 0;
        assert_true(desk_run(&desk, PATIENT_MS, &desk.wakes[1], 3));
        assert_int_equal(desk.wakes[0], 0); /* who has the lock needs none */
        assert_int_equal(desk_do(&desk, STORE_RELEASED, 1, 0), OUTCOME_YES);

        kit_take(&kit->locks[1], 2);
        unsigned before = read_count(&watches);
        set(failures[i], 0);
        expect_watched_again(&desk, kit, before);
        desk_close(&desk);
    }
}

static void closing_waits_for_a_try_that_hangs(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    set(&init_errno, EMFILE);
    desk_open(&desk, kit);
    uv_mutex_lock(&mutex);
    hang = true;
    init_errno = 0;
    init_count = 0;
    uv_mutex_unlock(&mutex);
    bool tried = desk_run(&desk, PATIENT_MS, &init_count, 1);
    local_store_ops.close(desk.store, on_closed, &desk);
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    bool closed_early = desk.closed;
    uv_mutex_lock(&mutex);
    hang = false;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&mutex);
    uv_run(&desk.loop, UV_RUN_DEFAULT);
    assert_true(tried);
    assert_false(closed_early);
    assert_true(desk.closed);
    assert_int_equal(uv_loop_close(&desk.loop), 0);
}

static void moved_or_removed_folder_is_watched_again(void **state) {
    struct local_kit *kit = *state;
    char moved[128];
    snprintf(moved, sizeof moved, "%s/moved", kit->top);
    for (unsigned i = 0; i < 2; i++) {
        struct desk desk;
        watch_lines = 0;
        desk_open(&desk, kit);
        desk_expect_quiet(&desk, QUIET_MS);
        if (i == 0) {
            assert_int_equal(rename(kit->place.folder, moved), 0);
        } else {
            assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
            assert_int_equal(unlink(kit_path(kit, "a.record")), 0);
            assert_int_equal(rmdir(kit->place.folder), 0);
        }
        expect_hints(&desk);
        unsigned before = read_count(&watches);
        kit_take(&kit->locks[1], 2); /* makes the folder anew */
        expect_watched_again(&desk, kit, before);
        desk_close(&desk);
    }
}

static void lost_news_wake_all(void **state) {
    struct local_kit *kit = *state;
    struct desk desk;
    unsigned most = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u", &most), 1); // NOLINT(cert-err34-c): the kernel's own
    assert_int_equal(fclose(file), 0);
    if (most > 200000) {
        skip(); /* would take too long */
    }
    desk_open(&desk, kit);
    for (unsigned i = 0; i <= most; i++) {
        kit_write(kit, i % 2 == 0 ? "x" : "y", "", 0); /* not the same twice: that is one event */
    }
    desk_expect_wake(&desk, PATIENT_MS, true);
    assert_true(desk_run(&desk, PATIENT_MS, &desk.wakes[1], 1));
    desk_run(&desk, QUIET_MS, NULL, 0);
    desk_expect_quiet(&desk, QUIET_MS);
    kit_take(&kit->locks[0], 1);
    lock_drop(&kit->locks[0]);
    desk_expect_wake(&desk, 100, false); /* the watch goes on */
    desk_close(&desk);
}

int main(void) {
    uv_mutex_init(&mutex);
    uv_cond_init(&changed);
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(killed_holder_is_told_at_once),
        LOCAL_TEST(each_end_is_told_twice_and_no_more),
        LOCAL_TEST(looks_and_renewals_wake_nobody),
        LOCAL_TEST(own_release_is_no_news),
        LOCAL_TEST(closed_store_is_told),
        LOCAL_TEST(without_inotify_there_are_hints),
        LOCAL_TEST(closing_waits_for_a_try_that_hangs),
        LOCAL_TEST(moved_or_removed_folder_is_watched_again),
        LOCAL_TEST(lost_news_wake_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
