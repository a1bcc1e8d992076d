/* The page as a file: which ones a reader refuses, how it finds a new one, how they are made. */
#include "page_kit.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_problem(const char *path, enum gavel_page_problem problem) {
    struct gavel_page *reader = gavel_page_create(path);
    assert_non_null(reader);
    struct gavel_page_answer answer;
    assert_false(gavel_page_check(reader, &answer));
    assert_int_equal(answer.problem, problem);
    assert_int_equal(answer.state, GAVEL_PAGE_UNKNOWN);
    assert_true(strlen(gavel_page_problem_text(answer.problem)) > 3);
    char holder[8] = "x";
    gavel_page_holder(reader, holder, sizeof holder);
    assert_string_equal(holder, "");
    gavel_page_destroy(reader);
}

static void every_word_that_must_fit(void **state) {
    static const struct {
        unsigned word;
        enum gavel_page_problem problem;
    } cases[] = {
        {GAVEL_PAGE_WORD_MAGIC, GAVEL_PAGE_NOT_A_PAGE},
        {GAVEL_PAGE_WORD_VERSION, GAVEL_PAGE_OTHER_VERSION},
        {GAVEL_PAGE_WORD_BYTES, GAVEL_PAGE_OTHER_VERSION},
        {GAVEL_PAGE_WORD_BOOT_ID, GAVEL_PAGE_OTHER_BOOT},
        {GAVEL_PAGE_WORD_BOOT_ID + 1, GAVEL_PAGE_OTHER_BOOT},
        {GAVEL_PAGE_WORD_TIME_NAMESPACE, GAVEL_PAGE_OTHER_CLOCK},
    };
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    uint64_t *words = page_map_words(fixture->path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        words[cases[i].word]++;
        assert_problem(fixture->path, cases[i].problem);
        words[cases[i].word]--;
    }
    struct gavel_page *reader = gavel_page_create(fixture->path);
    assert_true(gavel_page_check(reader, NULL));
    gavel_page_destroy(reader);
    words[GAVEL_PAGE_WORD_TOKEN] = 0;
    assert_problem(fixture->path, GAVEL_PAGE_GOOD);
    words[GAVEL_PAGE_WORD_TOKEN] = PAGE_TOKEN;
    words[GAVEL_PAGE_WORD_VALID_FOR] = 0;
    assert_problem(fixture->path, GAVEL_PAGE_GOOD);
    words[GAVEL_PAGE_WORD_STATE] = 77;
    assert_problem(fixture->path, GAVEL_PAGE_GOOD);
}

static void what_the_writer_says_of_itself(void **state) {
    struct page_fixture *fixture = *state;
    const uint64_t *words = page_map_words(fixture->path);
    assert_int_equal(words[GAVEL_PAGE_WORD_WRITER], getpid());
    assert_true(words[GAVEL_PAGE_WORD_WRITER_START] > 0);
    assert_int_equal(memcmp(words, "GAVELPG", 8), 0);
}

static void files_that_are_no_pages(void **state) {
    struct page_fixture *fixture = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/none", fixture->folder);
    assert_problem(path, GAVEL_PAGE_NO_FILE);
    assert_problem("", GAVEL_PAGE_NO_FILE);
    assert_problem(fixture->folder, GAVEL_PAGE_NOT_A_PAGE);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for its other end */
    assert_problem(path, GAVEL_PAGE_NOT_A_PAGE);
    assert_int_equal(truncate(fixture->path, GAVEL_PAGE_BYTES - 1), 0);
    assert_problem(fixture->path, GAVEL_PAGE_NOT_A_PAGE);
    assert_int_equal(truncate(fixture->path, 0), 0);
    assert_problem(fixture->path, GAVEL_PAGE_NOT_A_PAGE);
    assert_int_equal(truncate(fixture->path, GAVEL_PAGE_BYTES), 0);
    assert_problem(fixture->path, GAVEL_PAGE_NOT_A_PAGE); /* zeroes */
}

/* The writer died in the middle of a change. */
static void half_written_for_ever(void **state) {
    struct page_fixture *fixture = *state;
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    uint64_t *words = page_map_words(fixture->path);
    words[GAVEL_PAGE_WORD_SEQUENCE]++;
    assert_problem(fixture->path, GAVEL_PAGE_BUSY);
    struct gavel_page_answer answer;
    assert_false(gavel_page_check(fixture->reader, &answer));
    assert_int_equal(answer.problem, GAVEL_PAGE_BUSY);
}

static bool wait_for(struct gavel_page *reader, bool leader) {
    int64_t until_ns = clock_now().boot_ns + 20 * NS_PER_S;
    while (clock_now().boot_ns < until_ns) {
        if (gavel_page_check(reader, NULL) == leader) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

/* The sidecar ends, and another one starts: the reader that was there before follows. */
static void a_new_file_is_found(void **state) {
    struct page_fixture *fixture = *state;
    struct error error = {""};
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    assert_true(gavel_page_check(fixture->reader, NULL));
    pages_destroy(fixture->board.pages);
    assert_false(gavel_page_check(fixture->reader, NULL)); /* at once, in the old file */
    assert_int_equal(access(fixture->path, F_OK), -1);
    fixture->board.pages = pages_create(&fixture->setup, &error);
    view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    assert_true(wait_for(fixture->reader, true));
}

/* A reader may be there first. */
static void the_reader_comes_first(void **state) {
    struct page_fixture *fixture = *state;
    struct error error = {""};
    pages_destroy(fixture->board.pages);
    struct gavel_page *reader = gavel_page_create(fixture->path);
    struct gavel_page_answer answer;
    assert_false(gavel_page_check(reader, &answer));
    assert_int_equal(answer.problem, GAVEL_PAGE_NO_FILE);
    fixture->board.pages = pages_create(&fixture->setup, &error);
    struct view view = page_leader_view(2 * NS_PER_S);
    page_publish(fixture, &view);
    assert_true(wait_for(reader, true));
    gavel_page_destroy(reader);
}

/* A file that is refused takes the place of a good one: nothing of the old one counts. */
static void a_bad_file_in_its_place(void **state) {
    struct page_fixture *fixture = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/new", fixture->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(rename(path, fixture->path), 0);
    struct gavel_page_answer answer = {.problem = GAVEL_PAGE_GOOD};
    for (int i = 0; i < 20000 && answer.problem == GAVEL_PAGE_GOOD; i++) {
        usleep(1000);
        assert_false(gavel_page_check(fixture->reader, &answer));
    }
    assert_int_equal(answer.problem, GAVEL_PAGE_NOT_A_PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define PAGE_TEST(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, page_setup_fixture, page_teardown_fixture)
        PAGE_TEST(every_word_that_must_fit), PAGE_TEST(what_the_writer_says_of_itself),
        PAGE_TEST(files_that_are_no_pages),  PAGE_TEST(half_written_for_ever),
        PAGE_TEST(a_new_file_is_found),      PAGE_TEST(the_reader_comes_first),
        PAGE_TEST(a_bad_file_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
