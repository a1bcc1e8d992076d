#include "local_kit.h"

#include "store/local/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void urls_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *url;
        const char *complaint; /* NULL: right */
    } cases[] = {
        {"local:/var/lib/gavel", NULL},
        {"local:/var/lib/gavel/", NULL},
        {"local:/runner", NULL},
        {"local:/var/runner", NULL},
        {"local:/x y", NULL},
        {"local:", "local:/var/lib/gavel"},
        {"local:/", "local:/var/lib/gavel"},
        {"local:relative", "local:/var/lib/gavel"},
        {"local://host/dir", "local:/var/lib/gavel"},
        {"local:~/x", "local:/var/lib/gavel"},
        {"local:/a\nb", "control character"},
        {"local:/run", "reboot"},
        {"local:/run/gavel", "reboot"},
        {"local:/var/run/gavel", "reboot"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error = {""};
        bool right = place_check(cases[i].url, &error);
        assert_int_equal(right, cases[i].complaint == NULL);
        const char *complaint = cases[i].complaint != NULL ? cases[i].complaint : "";
        if (!right && strstr(error.text, complaint) == NULL) {
            fail_msg("%s: %s", cases[i].url, error.text);
        }
    }
}

static void long_path_is_refused(void **state) {
    (void)state;
    char url[PLACE_DIR_MAX + 16];
    struct error error = {""};
    memset(url, 'x', sizeof url);
    memcpy(url, "local:/", 7);
    url[6 + PLACE_DIR_MAX] = '\0';
    assert_true(place_check(url, &error));
    url[6 + PLACE_DIR_MAX] = 'x';
    url[6 + PLACE_DIR_MAX + 1] = '\0';
    assert_false(place_check(url, &error));
    assert_non_null(strstr(error.text, "1025 bytes, 1024 at most"));
}

static void expect_mode(const char *path, mode_t mode) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, mode);
}

static void folders_and_files_are_private(void **state) {
    struct local_kit *kit = *state;
    mode_t before = umask(0);
    struct place other;
    struct error error;
    char url[160];
    snprintf(url, sizeof url, "local:%s/other///", kit->top);
    assert_true(place_init(&other, url, "team", &error));
    kit_take(&kit->locks[0], 1);
    umask(before);

    expect_mode(other.dir, 0700);
    expect_mode(other.folder, 0700);
    expect_mode(kit_path(kit, "a.lock"), 0600);
    expect_mode(kit_path(kit, "a.record"), 0600);
    place_finish(&other);
}

/* `complaint` must be in the error. */
static void expect_refusal(const char *url, const char *namespace_, const char *complaint) {
    struct place place;
    struct error error = {""};
    assert_false(place_init(&place, url, namespace_, &error));
    if (strstr(error.text, complaint) == NULL) {
        fail_msg("%s", error.text);
    }
}

static void places_that_cannot_be_are_refused(void **state) {
    struct local_kit *kit = *state;
    char url[160];

    snprintf(url, sizeof url, "local:%s/missing/deep", kit->top);
    expect_refusal(url, "default", "the folder above it");
    assert_false(place_check("local:///var/lib", &(struct error){""}));
    expect_refusal(kit->url, "..", "namespace");
    expect_refusal(kit->url, "a/b", "namespace");
    kit_write(kit, "file", "", 0);
    snprintf(url, sizeof url, "local:%s", kit_path(kit, "file"));
    expect_refusal(url, "default", "file/default");
    /* The kernel's own: a type that is not accepted. */
    expect_refusal("local:/proc", "sys", "proc");
}

static void link_into_run_is_refused(void **state) {
    struct local_kit *kit = *state;
    char link[128];
    char url[160];
    snprintf(link, sizeof link, "%s/innocent", kit->top);
    snprintf(url, sizeof url, "local:%s", link);
    assert_int_equal(symlink("/run", link), 0);
    expect_refusal(url, "default", "reboot");
    snprintf(url, sizeof url, "local:%s/gavel-test-%ld", link, (long)getpid());
    expect_refusal(url, "default", "reboot");
    snprintf(url, sizeof url, "/run/gavel-test-%ld", (long)getpid());
    assert_int_equal(access(url, F_OK), -1); /* refused before anything was made */
}

static void link_for_the_namespace_is_refused(void **state) {
    struct local_kit *kit = *state;
    char link[160];
    snprintf(link, sizeof link, "%s/locks/linked", kit->top);
    assert_int_equal(symlink(kit->top, link), 0);
    expect_refusal(kit->url, "linked", "a link or no folder");
}

static void file_systems_are_judged(void **state) {
    (void)state;
    static const struct {
        unsigned long type;
        enum file_system_verdict verdict;
        const char *name;
    } cases[] = {
        {0xEF53, FILE_SYSTEM_GOOD, "ext"},
        {0x58465342, FILE_SYSTEM_GOOD, "xfs"},
        {0x9123683E, FILE_SYSTEM_GOOD, "btrfs"},
        {0xFFFFFFFF9123683E, FILE_SYSTEM_GOOD, "btrfs"}, /* sign-extended */
        {0x2FC12FC1, FILE_SYSTEM_GOOD, "zfs"},
        {0xF2F52010, FILE_SYSTEM_GOOD, "f2fs"},
        {0x01021994, FILE_SYSTEM_DOUBTFUL, "tmpfs"},
        {0x794C7630, FILE_SYSTEM_DOUBTFUL, "overlayfs"},
        {0x6969, FILE_SYSTEM_REFUSED, "nfs"},
        {0xFF534D42, FILE_SYSTEM_REFUSED, "cifs"},
        {0xFE534D42, FILE_SYSTEM_REFUSED, "smb2"},
        {0x01021997, FILE_SYSTEM_REFUSED, "9p"},
        {0x65735546, FILE_SYSTEM_REFUSED, "fuse or virtiofs"},
        {0x00C36400, FILE_SYSTEM_REFUSED, "ceph"},
        {0x12345678, FILE_SYSTEM_REFUSED, "unknown"},
        {0, FILE_SYSTEM_REFUSED, "unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = NULL;
        const char *why = NULL;
        assert_int_equal(file_system_judge(cases[i].type, &name, &why), cases[i].verdict);
        assert_string_equal(name, cases[i].name);
        assert_int_equal(why[0] == '\0', cases[i].verdict == FILE_SYSTEM_GOOD);
    }
}

static void reason_stays_when_the_path_is_long(void **state) {
    (void)state;
    char folder[400];
    struct trouble trouble;
    memset(folder, 'x', sizeof folder);
    folder[sizeof folder - 1] = '\0';

    trouble_set(&trouble, "cannot write", "/var/lib/gavel", "a.record", ENOSPC);
    assert_string_equal(trouble.text,
                        "cannot write /var/lib/gavel/a.record: no space left on device");
    trouble_set(&trouble, "cannot write", folder, "a.record", ENOSPC);
    assert_non_null(strstr(trouble.text, "no space left on device"));
}

static void pod_is_a_warning(void **state) {
    struct local_kit *kit = *state;
    struct lock_job job = kit_take(&kit->locks[0], 1);
    assert_int_equal(job.event.reply.warnings, 0);

    struct place place;
    struct error error;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    assert_true(place_init(&place, kit->url, "default", &error));
    unsetenv("KUBERNETES_SERVICE_HOST");
    kit->locks[1].place = &place;
    job = kit_do(&kit->locks[1], STORE_ACQUIRED, kit_request(2));
    kit_expect(&job, OUTCOME_NO);
    assert_int_equal(job.event.reply.warnings, WARNING_LOCAL_STORE_IN_A_POD);
    place_finish(&place);
}

int main(void) {
    unsetenv("KUBERNETES_SERVICE_HOST"); /* the tests may run in a pod */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_checked),
        cmocka_unit_test(long_path_is_refused),
        LOCAL_TEST(folders_and_files_are_private),
        LOCAL_TEST(places_that_cannot_be_are_refused),
        LOCAL_TEST(link_into_run_is_refused),
        LOCAL_TEST(link_for_the_namespace_is_refused),
        cmocka_unit_test(file_systems_are_judged),
        cmocka_unit_test(reason_stays_when_the_path_is_long),
        LOCAL_TEST(pod_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
