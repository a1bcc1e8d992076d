#include "gavel_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return GAVEL_NO_CLOCK_NS; /* later than any deadline */
    }
    return (int64_t)now.tv_sec * 1000 * GAVEL_NS_PER_MS + now.tv_nsec;
}

int64_t gavel_boot_ns(void) {
    return read_clock(CLOCK_BOOTTIME);
}

struct gavel_promise gavel_clocks(void) {
    return (struct gavel_promise){.boot_ns = gavel_boot_ns(),
                                  .real_ns = read_clock(CLOCK_REALTIME)};
}

struct gavel_promise gavel_promise_since(uint64_t token, struct gavel_promise since,
                                         int64_t valid_ns) {
    return (struct gavel_promise){
        .token = token, .boot_ns = since.boot_ns + valid_ns, .real_ns = since.real_ns + valid_ns};
}

int64_t gavel_promise_left_ns(const struct gavel_promise *promise) {
    if (promise->token == 0) {
        return 0;
    }
    struct gavel_promise now = gavel_clocks();
    if (now.boot_ns == GAVEL_NO_CLOCK_NS || now.real_ns == GAVEL_NO_CLOCK_NS) {
        return 0;
    }
    int64_t boot_ns = promise->boot_ns - now.boot_ns, real_ns = promise->real_ns - now.real_ns;
    return boot_ns < real_ns ? boot_ns : real_ns;
}

bool gavel_numbers(const char *line, const char *verb, size_t count, int64_t *numbers) {
    size_t length = strlen(verb);
    if (strncmp(line, verb, length) != 0) {
        return false;
    }
    line += length;
    for (size_t i = 0; i < count; i++) {
        if (*line++ != ' ' || *line < '0' || *line > '9') {
            return false;
        }
        int64_t number = 0;
        for (; *line >= '0' && *line <= '9'; line++) {
            if (number > INT64_MAX / 20) {
                return false;
            }
            number = number * 10 + (*line - '0');
        }
        numbers[i] = number;
    }
    /* No token is longer than 15 digits, no time in milliseconds than 10. */
    const int64_t tokens = INT64_C(1000000000000000), times = INT64_C(10000000000);
    return *line == '\0' && numbers[0] < (count > 1 ? tokens : times) &&
           (count < 2 || numbers[1] < times) && (count < 4 || numbers[3] < times);
}

struct gavel_promise gavel_pushed(const int64_t *numbers) {
    struct gavel_promise now = gavel_clocks();
    int64_t left_ns = numbers[2] - now.boot_ns;
    if (left_ns > numbers[1] * GAVEL_NS_PER_MS) {
        return (struct gavel_promise){.token = 0};
    }
    return gavel_promise_since((uint64_t)numbers[0], now, left_ns);
}

static int poll_ms(int64_t left_ns) {
    int64_t ms = left_ns <= 0 ? 0 : (left_ns + GAVEL_NS_PER_MS - 1) / GAVEL_NS_PER_MS;
    return ms < 3600000 ? (int)ms : 3600000;
}

bool gavel_pause(int wake, int64_t sleep_ns) {
    int64_t end_ns = gavel_boot_ns() + sleep_ns;
    struct pollfd wanted = {.fd = wake, .events = POLLIN};
    for (int64_t left_ns = sleep_ns; left_ns > 0; left_ns = end_ns - gavel_boot_ns()) {
        if (poll(&wanted, 1, poll_ms(left_ns)) > 0) {
            return true;
        }
    }
    return poll(&wanted, 1, 0) > 0;
}

void gavel_signal(int wake) {
    (void)eventfd_write(wake, 1);
}

void gavel_line_close(struct gavel_line *line) {
    if (line->fd >= 0) {
        (void)close(line->fd);
    }
    line->fd = -1;
}

bool gavel_line_open(struct gavel_line *line, const struct gavel *gavel, const char *verb,
                     int wake) {
    char request[192];
    *line = (struct gavel_line){.wake = wake};
    line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int64_t end_ns = gavel_boot_ns() + gavel->timeout_ns;
    while (connect(line->fd, (const struct sockaddr *)&gavel->address, sizeof gavel->address) !=
           0) {
        /* EAGAIN: the listener's queue is full. */
        if (errno != EAGAIN || gavel_boot_ns() > end_ns ||
            gavel_pause(wake, 10 * GAVEL_NS_PER_MS)) {
            gavel_line_close(line);
            return false;
        }
    }
    int length = snprintf(request, sizeof request, "%s%s%s\n", verb,
                          gavel->election[0] != '\0' ? " " : "", gavel->election);
    /* The buffer of a new connection takes it. */
    if (send(line->fd, request, (size_t)length, MSG_NOSIGNAL) != length) {
        gavel_line_close(line);
        return false;
    }
    return true;
}

/* A whole line that is there already; NULL: none is. */
static const char *take(struct gavel_line *line) {
    char *end = memchr(line->bytes + line->taken, '\n', line->length - line->taken);
    if (end == NULL) {
        memmove(line->bytes, line->bytes + line->taken, line->length - line->taken);
        line->length -= line->taken;
        line->taken = 0;
        return NULL;
    }
    char *text = line->bytes + line->taken;
    line->taken = (size_t)(end - line->bytes) + 1;
    *end = '\0';
    /* One with a NUL in it is none of ours, and is read as an empty one. */
    return strlen(text) == (size_t)(end - text) ? text : end;
}

int gavel_line_read(struct gavel_line *line, int64_t timeout_ns, const char **text) {
    int64_t end_ns = gavel_boot_ns() + timeout_ns;
    while ((*text = take(line)) == NULL) {
        if (line->length == sizeof line->bytes) {
            return -1;
        }
        ssize_t got =
            recv(line->fd, line->bytes + line->length, sizeof line->bytes - line->length, 0);
        if (got > 0) {
            line->length += (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            line->gone = true;
            return -1;
        }
        int64_t left_ns = end_ns - gavel_boot_ns();
        struct pollfd wanted[] = {{.fd = line->fd, .events = POLLIN},
                                  {.fd = line->wake, .events = POLLIN}};
        (void)poll(wanted, 2, poll_ms(left_ns));
        if (wanted[1].revents != 0) {
            return -1;
        }
        if (left_ns <= 0 && wanted[0].revents == 0) {
            return 0;
        }
    }
    return 1;
}

void gavel_say(int fd, const char *verb, uint64_t token) {
    char text[64];
    int length = token != 0 ? snprintf(text, sizeof text, "%s %" PRIu64 "\n", verb, token)
                            : snprintf(text, sizeof text, "%s\n", verb);
    (void)send(fd, text, (size_t)length, MSG_NOSIGNAL); /* so short a line is taken, or not */
}
