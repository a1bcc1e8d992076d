/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[32];
static char path[64];

static int setup(void **state) {
    (void)state;
    (void)strcpy(folder, "/tmp/gavel-test-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void write_bytes(size_t size) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(fputc('a' + (int)(i % 26), out), 'a' + (int)(i % 26));
    }
    assert_int_equal(fclose(out), 0);
}

static void whole_files_are_read(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 99, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct file_content content;
        struct error error;
        write_bytes(sizes[i]);
        assert_int_equal(chmod(path, 0640), 0);
        assert_true(file_read(path, 100, &content, &error));
        assert_int_equal(content.size, sizes[i]);
        assert_int_equal(content.bytes[sizes[i]], '\0');
        assert_int_equal(content.mode & 0777, 0640);
        for (size_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(content.bytes[at], 'a' + (int)(at % 26));
        }
        file_content_finish(&content);
        assert_null(content.bytes);
    }
}

static void files_that_do_not_say_their_size_are_read(void **state) {
    (void)state;
    struct file_content content;
    struct error error;
    assert_true(file_read("/proc/self/status", 65536, &content, &error));
    assert_true(content.size > 100 && content.size == strlen(content.bytes));
    assert_memory_equal(content.bytes, "Name:", 5);
    assert_non_null(strstr(content.bytes, "nonvoluntary_ctxt_switches"));
    file_content_finish(&content);
    assert_false(file_read("/proc/self/status", 100, &content, &error));
    assert_non_null(strstr(error.text, "too long: at most 100 bytes"));
}

static void assert_refused(const char *word) {
    struct file_content content;
    struct error error;
    assert_false(file_read(path, 100, &content, &error));
    assert_non_null(strstr(error.text, word));
    assert_null(content.bytes);
}

static void others_are_refused(void **state) {
    (void)state;
    assert_refused("No such file");
    write_bytes(101);
    assert_refused("too long");
    write_bytes(100000);
    assert_refused("too long");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused("not a regular file"); /* and nobody is waited for */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(folder, path), 0);
    assert_refused("not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_files_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_do_not_say_their_size_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
