#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct asker {
    int fd;
    size_t length;
    char buffer[2048];
};

struct crowd {
    const struct target *target;
    int epoll;
    unsigned clients;
    struct asker *askers;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

struct crowd *crowd_create(const struct target *target, unsigned clients) {
    struct crowd *crowd = calloc(1, sizeof *crowd);
    struct asker *askers = calloc(clients, sizeof *askers);
    if (crowd == NULL || askers == NULL) {
        fail("memory");
    }
    *crowd = (struct crowd){target, epoll_create1(EPOLL_CLOEXEC), clients, askers};
    for (unsigned i = 0; i < clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &askers[i]}};
        askers[i].fd = target_connect(target);
        if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, askers[i].fd, &event) != 0) {
            fail("epoll_ctl");
        }
    }
    return crowd;
}

static void ask(const struct target *target, const struct asker *asker) {
    if (write(asker->fd, target->question, target->question_length) !=
        (ssize_t)target->question_length) {
        fail(target->address);
    }
}

/* Whether the answer is complete now. */
static bool read_answer(const struct target *target, struct asker *asker) {
    ssize_t got =
        read(asker->fd, asker->buffer + asker->length, sizeof asker->buffer - 1 - asker->length);
    if (got <= 0) {
        fail(target->address);
    }
    asker->length += (size_t)got;
    asker->buffer[asker->length] = '\0';
    if (target_answer_end(target, asker->buffer, asker->length) == 0) {
        return false;
    }
    asker->length = 0; /* one question at a time: nothing comes behind it */
    return true;
}

uint64_t crowd_ask(struct crowd *crowd, int64_t duration_ns) {
    struct epoll_event events[64];
    int64_t until_ns = now_ns() + duration_ns;
    uint64_t answered = 0;
    unsigned waiting = crowd->clients;
    for (unsigned i = 0; i < crowd->clients; i++) {
        ask(crowd->target, &crowd->askers[i]);
    }
    while (waiting > 0) {
        int count = epoll_wait(crowd->epoll, events, 64, -1);
        bool goes_on = now_ns() < until_ns;
        for (int i = 0; i < count; i++) {
            struct asker *asker = events[i].data.ptr;
            if (read_answer(crowd->target, asker)) {
                answered += goes_on; /* those that end the window are not counted */
                if (goes_on) {
                    ask(crowd->target, asker);
                } else {
                    waiting--;
                }
            }
        }
    }
    return answered;
}
