/* Making the pages: their mode, whose they are, what is in the way. */
#include "../clients/page_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void again(struct page_fixture *fixture) {
    struct error error = {""};
    if (fixture->board.pages != NULL) {
        pages_destroy(fixture->board.pages);
    }
    fixture->board.pages = pages_create(&fixture->setup, &error);
    assert_string_equal(error.text, "");
}

static void assert_refused(struct page_fixture *fixture, const char *first, const char *second) {
    struct error error = {""};
    assert_null(pages_create(&fixture->setup, &error));
    if (strstr(error.text, "--page-dir") == NULL || strstr(error.text, first) == NULL ||
        strstr(error.text, second) == NULL) {
        fail_msg("not named in the error: %s", error.text);
    }
}

/* Whole and allocated, to be read by anybody, to be written by its owner, whatever the umask. */
static void the_file(void **state) {
    struct page_fixture *fixture = *state;
    mode_t before = umask(0077);
    again(fixture);
    umask(0);
    again(fixture);
    umask(before);
    struct stat found;
    assert_int_equal(lstat(fixture->path, &found), 0);
    assert_true(S_ISREG(found.st_mode));
    assert_int_equal(found.st_mode & 07777, 0644);
    assert_int_equal(found.st_size, GAVEL_PAGE_BYTES);
    assert_true(found.st_blocks * 512 >= GAVEL_PAGE_BYTES);
}

/* Somebody else's file behind a link stays as it is. */
static void links_are_not_followed(void **state) {
    static const char *const names[] = {"billing.lease", ".billing.lease.new"};
    struct page_fixture *fixture = *state;
    for (int i = 0; i < 2; i++) {
        char victim[64];
        char name[96];
        snprintf(victim, sizeof victim, "%s/victim", fixture->folder);
        snprintf(name, sizeof name, "%s/%s", fixture->folder, names[i]);
        pages_destroy(fixture->board.pages);
        fixture->board.pages = NULL;
        close(open(victim, O_CREAT | O_WRONLY, 0600));
        assert_int_equal(symlink(victim, name), 0);
        again(fixture);
        struct stat found;
        assert_int_equal(stat(victim, &found), 0);
        assert_int_equal(found.st_size, 0);
        assert_int_equal(found.st_mode & 07777, 0600);
        assert_int_equal(lstat(fixture->path, &found), 0);
        assert_true(S_ISREG(found.st_mode));
    }
}

static void the_lock_file_is_no_link(void **state) {
    struct page_fixture *fixture = *state;
    char lock[64];
    snprintf(lock, sizeof lock, "%s/.gavel-pages.lock", fixture->folder);
    pages_destroy(fixture->board.pages);
    fixture->board.pages = NULL;
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink("/tmp/gavel-test-none", lock), 0);
    assert_refused(fixture, ".gavel-pages.lock", fixture->folder);
    assert_int_equal(access("/tmp/gavel-test-none", F_OK), -1);
}

/* Another sidecar's readers must not be given our page: they would go by our leadership. */
static void one_writer_for_each_election(void **state) {
    struct page_fixture *fixture = *state;
    assert_refused(fixture, "billing", "another gavel");
    struct board other = fixture->board;
    other.entries = &fixture->entries[1];
    other.pages = NULL;
    struct pages_setup setup = fixture->setup;
    setup.board = &other;
    struct error error = {""};
    struct pages *mail = pages_create(&setup, &error);
    assert_non_null(mail);
    pages_destroy(mail);
    assert_int_equal(access(fixture->path, F_OK), 0);
    again(fixture);
}

/* A sidecar that is killed leaves its file and lets go of its lock. */
static void after_a_kill(void **state) {
    struct page_fixture *fixture = *state;
    pages_destroy(fixture->board.pages);
    fixture->board.pages = NULL;
    pid_t child = fork();
    if (child == 0) {
        struct error error = {""};
        _exit(pages_create(&fixture->setup, &error) != NULL ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat old;
    struct stat new;
    assert_int_equal(stat(fixture->path, &old), 0);
    int fd = open(fixture->path, O_RDONLY); /* its inode is not used again meanwhile */
    again(fixture);
    assert_int_equal(stat(fixture->path, &new), 0);
    assert_true(old.st_ino != new.st_ino);
    close(fd);
}

static void folders_that_do_not_serve(void **state) {
    struct page_fixture *fixture = *state;
    char path[64];
    pages_destroy(fixture->board.pages);
    fixture->board.pages = NULL;
    fixture->setup.directory = "/tmp/gavel-test-none";
    assert_refused(fixture, "/tmp/gavel-test-none", strerror(ENOENT));
    snprintf(path, sizeof path, "%s/file", fixture->folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    fixture->setup.directory = path;
    assert_refused(fixture, path, strerror(ENOTDIR));
    fixture->setup.directory = fixture->folder;
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_refused(fixture, "billing", strerror(EISDIR));
    assert_int_equal(rmdir(fixture->path), 0);
    snprintf(path, sizeof path, "%s/.billing.lease.new", fixture->folder);
    assert_int_equal(access(path, F_OK), -1); /* nothing is left over */
    assert_int_equal(chmod(fixture->folder, 0500), 0);
    if (geteuid() != 0) { /* root may write all the same */
        assert_refused(fixture, fixture->folder, strerror(EACCES));
    }
    assert_int_equal(chmod(fixture->folder, 0700), 0);
}

/* In a mount namespace of its own, since it takes a file system that is full. */
static int on_a_full_disk(struct page_fixture *fixture) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", fixture->folder, "tmpfs", 0, "size=4k") != 0) {
        return 77;
    }
    char path[64];
    snprintf(path, sizeof path, "%s/x", fixture->folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, 4096) != 0) {
        return 2;
    }
    struct error error = {""};
    if (pages_create(&fixture->setup, &error) != NULL ||
        strstr(error.text, strerror(ENOSPC)) == NULL) {
        fprintf(stderr, "error: %s\n", error.text);
        return 3;
    }
    return access(fixture->path, F_OK) == 0 ? 4 : 0;
}

static void a_full_disk_is_an_error_at_the_start(void **state) {
    struct page_fixture *fixture = *state;
    pages_destroy(fixture->board.pages);
    fixture->board.pages = NULL;
    pid_t child = fork();
    if (child == 0) {
        _exit(on_a_full_disk(fixture));
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip(); /* only root may mount */
    }
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define PAGE_TEST(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, page_setup_fixture, page_teardown_fixture)
        PAGE_TEST(the_file),
        PAGE_TEST(links_are_not_followed),
        PAGE_TEST(the_lock_file_is_no_link),
        PAGE_TEST(one_writer_for_each_election),
        PAGE_TEST(after_a_kill),
        PAGE_TEST(folders_that_do_not_serve),
        PAGE_TEST(a_full_disk_is_an_error_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
