#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PARTS] = {
    [PART_SLOW] = "slow",
    [PART_LATE] = "late",
    [PART_LOST_REQUESTS] = "lost-requests",
    [PART_LOST_REPLIES] = "lost-replies",
    [PART_REPEATED] = "repeated",
    [PART_LOST_WAKES] = "lost-wakes",
    [PART_APPS] = "apps",
    [PART_FOURTH_HOST] = "fourth-host",
    [PART_THIRD_HOST] = "third-host",
    [PART_RATES] = "rates",
};

const char *schedule_part_name(enum schedule_part part) {
    return names[part];
}

int schedule_faults_left(const struct schedule *schedule, unsigned first, unsigned second) {
    int left = 0;
    for (unsigned i = 0; i < FAULTS_MOST; i++) {
        left += i < first && !schedule->left_out[i] ? 1 : 0;
        left += i < second && !schedule->left_out[FAULTS_MOST + i] ? 1 : 0;
    }
    return left;
}

void schedule_print(const struct schedule *schedule) {
    printf("--seed %llu", (unsigned long long)schedule->seed);
    const char *between = " --off ";
    for (int part = 0; part < PARTS; part++) {
        if (schedule_is_off(schedule, (enum schedule_part)part)) {
            printf("%s%s", between, names[part]);
            between = ",";
        }
    }
    between = " --without ";
    for (int i = 0; i < 2 * FAULTS_MOST; i++) {
        int last = i;
        while (schedule->left_out[i] && last + 1 < 2 * FAULTS_MOST &&
               schedule->left_out[last + 1]) {
            last++;
        }
        if (schedule->left_out[i]) {
            printf("%s%d-%d", between, i, last);
            between = ",";
            i = last;
        }
    }
}

bool schedule_read_off(struct schedule *schedule, const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        int part = 0;
        while (part < PARTS &&
               (strncmp(names[part], text, length) != 0 || names[part][length] != '\0')) {
            part++;
        }
        if (part == PARTS) {
            return false;
        }
        schedule->parts_off |= 1U << part;
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return true;
}

bool schedule_read_without(struct schedule *schedule, const char *text) {
    while (*text != '\0') {
        char *end = NULL;
        unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text) {
            return false;
        }
        if (*end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
        }
        if (end == text || last < first || last >= 2 * FAULTS_MOST ||
            (*end != ',' && *end != '\0')) {
            return false;
        }
        for (unsigned long i = first; i <= last; i++) {
            schedule->left_out[i] = true;
        }
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}
