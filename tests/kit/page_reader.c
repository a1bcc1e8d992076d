/*
 * Asks the page PATH in the words of tests/kit/page.py, one line of stdin at a time:
 *   check     -> "SEND_NS RECEIVE_NS leader TOKEN VALID_NS DEADLINE_NS", or
 *                "SEND_NS RECEIVE_NS STATE PROBLEM HOLDER|-"
 *   spin N    -> N checks, then how many of them said leader: "spun LEADER"
 *   follow NS -> checks without pause until BOOTTIME NS; a line as of check for the first (at
 * once), for each that differs in more than its times, and for the one before such a one; then
 * "followed COUNT"
 */
#include "gavel_page.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t boottime_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_BOOTTIME, &time);
    return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void print_answer(struct gavel_page *page, const struct gavel_page_answer *answer,
                         int64_t send_ns, int64_t receive_ns) {
    static const char *const states[] = {"unknown", "follower", "pending", "leader", "resigning"};
    printf("%" PRId64 " %" PRId64 " ", send_ns, receive_ns);
    if (answer->leader) {
        printf("leader %" PRIu64 " %" PRId64 " %" PRId64 "\n", answer->token, answer->valid_ns,
               answer->deadline_ns);
    } else {
        char holder[GAVEL_PAGE_HOLDER_BYTES + 1];
        gavel_page_holder(page, holder, sizeof holder);
        printf("%s %d %s\n", states[answer->state], (int)answer->problem,
               holder[0] != '\0' ? holder : "-");
    }
}

static void check(struct gavel_page *page) {
    struct gavel_page_answer answer;
    int64_t send_ns = boottime_ns();
    (void)gavel_page_check(page, &answer);
    print_answer(page, &answer, send_ns, boottime_ns());
}

static void spin(struct gavel_page *page, uint64_t count) {
    uint64_t leader = 0;
    while (count-- > 0) {
        leader += gavel_page_check(page, NULL);
    }
    printf("spun %" PRIu64 "\n", leader);
}

static bool brings_a_change(const struct gavel_page_answer *now,
                            const struct gavel_page_answer *last) {
    return now->leader != last->leader || now->token != last->token || now->state != last->state ||
           now->problem != last->problem;
}

static void follow(struct gavel_page *page, int64_t until_ns) {
    struct gavel_page_answer last = {0};
    int64_t last_send_ns = 0;
    int64_t last_receive_ns = 0;
    bool last_printed = true;
    uint64_t count = 0;
    for (int64_t send_ns = boottime_ns(); send_ns < until_ns; count++) {
        struct gavel_page_answer answer;
        (void)gavel_page_check(page, &answer);
        int64_t receive_ns = boottime_ns();
        bool changed = count == 0 || brings_a_change(&answer, &last);
        if (changed) {
            if (!last_printed) {
                print_answer(page, &last, last_send_ns, last_receive_ns);
            }
            print_answer(page, &answer, send_ns, receive_ns);
        }
        if (count == 0) {
            (void)fflush(stdout);
        }
        last = answer;
        last_send_ns = send_ns;
        last_receive_ns = receive_ns;
        last_printed = changed;
        send_ns = receive_ns;
    }
    printf("followed %" PRIu64 "\n", count);
}

int main(int argc, char **argv) {
    char line[64];
    struct gavel_page *page = gavel_page_create(argc > 1 ? argv[1] : "");
    if (page == NULL) {
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "spin ", 5) == 0) {
            spin(page, strtoull(line + 5, NULL, 10));
        } else if (strncmp(line, "follow ", 7) == 0) {
            follow(page, strtoll(line + 7, NULL, 10));
        } else {
            check(page);
        }
        (void)fflush(stdout);
    }
    gavel_page_destroy(page);
    return 0;
}
