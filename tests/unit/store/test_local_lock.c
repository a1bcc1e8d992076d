/* Files that are replaced, missing or of the wrong kind; holders that crash or are stopped. */
#include "local_kit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void replaced_lock_file_ends_the_grant(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    struct lock_job other = kit_take(&kit->locks[1], 2);
    assert_int_equal(other.event.reply.doubt, DOUBT_UNCLEAN); /* it waits for the first one */

    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_NO);
    assert_int_equal(job.event.reply.reason, REASON_RENEWAL_REFUSED);
    assert_true(job.event.reply.held);
    assert_string_equal(job.event.reply.holder, "two");
    assert_string_not_equal(job.note.text, "");
    assert_int_equal(kit->locks[0].fd, -1);
}

static void removed_lock_file_ends_the_grant(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_NO);
    assert_false(job.event.reply.held);
}

static void replaced_folder_ends_the_grant(void **state) {
    struct local_kit *kit = *state;
    char moved[128];
    snprintf(moved, sizeof moved, "%s/moved", kit->top);
    kit_take(&kit->locks[0], 1);
    assert_int_equal(rename(kit->place.folder, moved), 0);
    struct lock_job other = kit_take(&kit->locks[1], 2); /* the folder is made again */
    assert_int_equal(other.event.reply.doubt, DOUBT_NO_RECORD);
    struct lock_job job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_NO);
    assert_string_equal(job.event.reply.holder, "two");
}

static void late_release_leaves_another_record_alone(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    struct lock_job other = kit_take(&kit->locks[1], 2);

    struct store_request release = kit_request(1);
    release.clean = true;
    release.token = kit->locks[0].token;
    struct lock_job job = kit_do(&kit->locks[0], STORE_RELEASED, release);
    kit_expect(&job, OUTCOME_NO);
    assert_false(kit_record(kit).clean);
    assert_true(kit_record(kit).token == other.event.reply.token);
    job = kit_do(&kit->locks[1], STORE_RENEWED, kit_request(2));
    kit_expect(&job, OUTCOME_YES);
}

static void retry_after_a_replacement_is_a_new_grant(void **state) {
    struct local_kit *kit = *state;
    uint64_t first = kit_take(&kit->locks[0], 1).event.reply.token;
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    struct lock_job job = kit_take(&kit->locks[0], 1);
    assert_true(job.event.reply.token > first);
    assert_int_equal(job.event.reply.doubt, DOUBT_UNCLEAN);
    job = kit_do(&kit->locks[1], STORE_ACQUIRED, kit_request(2));
    kit_expect(&job, OUTCOME_NO);
}

static void grant_that_nobody_wants_is_dropped(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[0], 1);
    struct lock_job look =
        kit_do(&kit->locks[0], STORE_ACQUIRED, (struct store_request){.take = false});
    kit_expect(&look, OUTCOME_NO);
    assert_int_equal(unlink(kit_path(kit, "a.record")), 0);
    look = kit_do(&kit->locks[0], STORE_ACQUIRED, (struct store_request){.take = false});
    kit_expect(&look, OUTCOME_NO); /* it is shown, so that it can be released */
    assert_memory_equal(look.event.reply.holder_nonce, kit_request(1).nonce, NONCE_BYTES);

    struct lock_job job = kit_take(&kit->locks[0], 2);
    assert_int_equal(job.event.reply.prior, PRIOR_NONE);
    assert_int_equal(job.event.reply.doubt, DOUBT_NO_RECORD);
    job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(1));
    kit_expect(&job, OUTCOME_NO);
    job = kit_do(&kit->locks[0], STORE_RENEWED, kit_request(2));
    kit_expect(&job, OUTCOME_YES);
}

static void expect_refused(struct local_kit *kit, enum store_event_type type, const char *why) {
    struct lock_job job = kit_do(&kit->locks[0], type, kit_request(1));
    kit_expect(&job, OUTCOME_UNSURE);
    assert_int_equal(job.event.reply.reason, REASON_STORE_REFUSED);
    if (strstr(job.event.text, why) == NULL) {
        fail_msg("%s", job.event.text);
    }
    assert_int_equal(kit->locks[0].fd, -1);
}

static void links_are_refused(void **state) {
    struct local_kit *kit = *state;
    char target[128];
    snprintf(target, sizeof target, "%s/target", kit->top);

    assert_int_equal(symlink(target, kit_path(kit, "a.lock")), 0);
    expect_refused(kit, STORE_ACQUIRED, "a.lock: a symbolic link");
    assert_int_equal(access(target, F_OK), -1); /* and not followed */
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);

    assert_int_equal(symlink(target, kit_path(kit, "a.record")), 0);
    expect_refused(kit, STORE_ACQUIRED, "a.record: a symbolic link");
    assert_int_equal(unlink(kit_path(kit, "a.record")), 0);

    assert_int_equal(symlink(target, kit_path(kit, "a.tmp")), 0);
    kit_take(&kit->locks[0], 1); /* swept away, not written through */
    assert_int_equal(access(target, F_OK), -1);
}

static void what_is_no_file_is_refused(void **state) {
    struct local_kit *kit = *state;
    assert_int_equal(mkfifo(kit_path(kit, "a.lock"), 0600), 0);
    expect_refused(kit, STORE_ACQUIRED, "not a regular file");
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    assert_int_equal(mkfifo(kit_path(kit, "a.record"), 0600), 0);
    expect_refused(kit, STORE_ACQUIRED, "not a regular file"); /* and does not hang */
    assert_int_equal(unlink(kit_path(kit, "a.record")), 0);
    assert_int_equal(unlink(kit_path(kit, "a.lock")), 0);
    assert_int_equal(mkdir(kit_path(kit, "a.lock"), 0700), 0);
    expect_refused(kit, STORE_ACQUIRED, "a.lock");
}

static void folder_on_another_file_system_is_refused(void **state) {
    struct local_kit *kit = *state;
    char *folder = kit->place.folder;
    char proc[] = "/proc/sys";
    kit->place.folder = proc;
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(1));
    kit->place.folder = folder;
    kit_expect(&job, OUTCOME_UNSURE);
    assert_non_null(strstr(job.event.text, "file system proc"));
}

/* Starts a process that takes the lock and keeps it. */
static pid_t start_holder(struct local_kit *kit) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
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

static void stopped_holder_keeps_the_lock_and_a_killed_one_does_not(void **state) {
    struct local_kit *kit = *state;
    pid_t pid = start_holder(kit);
    int status = 0;

    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(1));
    assert_int_equal(job.event.reply.outcome, OUTCOME_NO);
    assert_string_equal(job.event.reply.holder, "two");
    assert_true(job.event.reply.expires_in_ns < 0);

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    job = kit_take(&kit->locks[0], 1); /* at once, and knows that it has to wait */
    assert_int_equal(job.event.reply.prior, PRIOR_NONE);
    assert_int_equal(job.event.reply.doubt, DOUBT_UNCLEAN);
}

static void holder_between_lock_and_record_is_not_misnamed(void **state) {
    struct local_kit *kit = *state;
    kit_take(&kit->locks[1], 1);
    kit_give(&kit->locks[1], 1);
    kit_take(&kit->locks[1], 2);
    /* As if the second grant had not written yet. */
    struct record record = kit_record(kit);
    char text[RECORD_TEXT_MAX];
    record.clean = true;
    kit_write(kit, "a.record", text, record_format(&record, text));

    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, kit_request(3));
    kit_expect(&job, OUTCOME_NO);
    assert_true(job.event.reply.held);
    assert_false(job.event.reply.holder_nonce_known);
    assert_string_equal(job.event.reply.holder, "");
}

/* Acquires with this W; the longest ttl of the answer, which must be the record's too. */
static int64_t take_with_wait(struct local_kit *kit, int64_t wait_ns) {
    struct store_request request = kit_request(1);
    request.wait_ns = wait_ns;
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, request);
    kit_expect(&job, OUTCOME_YES);
    assert_true(kit_record(kit).longest_ttl_ns == job.event.reply.longest_ttl_ns);
    return job.event.reply.longest_ttl_ns;
}

static void grant_passes_on_the_longest_ttl_it_knows(void **state) {
    struct local_kit *kit = *state;
    assert_true(take_with_wait(kit, 60 * NS_PER_S) == 60 * NS_PER_S); /* no record */
    lock_drop(&kit->locks[0]);
    assert_true(take_with_wait(kit, KIT_TTL_NS) == 60 * NS_PER_S); /* the recorded one */
    lock_drop(&kit->locks[0]);
    assert_true(take_with_wait(kit, 70 * NS_PER_S) == 70 * NS_PER_S);
    lock_drop(&kit->locks[0]);
    assert_true(take_with_wait(kit, 7200 * NS_PER_S) == 3600 * NS_PER_S);
    kit_give(&kit->locks[0], 1);
    assert_true(take_with_wait(kit, 60 * NS_PER_S) == KIT_TTL_NS); /* it ended cleanly */
    kit_give(&kit->locks[0], 1);

    /* A clean record that is not of the last lease says nothing of that one. */
    struct store_request request = kit_request(2);
    request.seen_token = kit_record(kit).token + 1;
    request.wait_ns = 60 * NS_PER_S;
    struct lock_job job = kit_do(&kit->locks[0], STORE_ACQUIRED, request);
    kit_expect(&job, OUTCOME_YES);
    assert_true(job.event.reply.longest_ttl_ns == 60 * NS_PER_S);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(replaced_lock_file_ends_the_grant),
        LOCAL_TEST(removed_lock_file_ends_the_grant),
        LOCAL_TEST(replaced_folder_ends_the_grant),
        LOCAL_TEST(late_release_leaves_another_record_alone),
        LOCAL_TEST(retry_after_a_replacement_is_a_new_grant),
        LOCAL_TEST(grant_that_nobody_wants_is_dropped),
        LOCAL_TEST(links_are_refused),
        LOCAL_TEST(what_is_no_file_is_refused),
        LOCAL_TEST(folder_on_another_file_system_is_refused),
        LOCAL_TEST(stopped_holder_keeps_the_lock_and_a_killed_one_does_not),
        LOCAL_TEST(grant_passes_on_the_longest_ttl_it_knows),
        LOCAL_TEST(holder_between_lock_and_record_is_not_misnamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
