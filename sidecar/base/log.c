#include "base/log.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A pipe takes a line of this length whole or not at all. */
#define LINE_MAX_BYTES PIPE_BUF
/* Kept free for the end of a line: counts of what was left out, bracket, line end. */
#define TAIL_BYTES 80
#define VALUE_MAX_BYTES 1024 /* of one field, escaped */

static struct {
    bool json;
    enum log_level least;
    int fd;        /* a description of our own that never blocks; negative: use stderr itself */
    bool cut;      /* the last line got out in part: begin a new one */
    uint64_t lost; /* lines that could not be written since the last that could */
    uint64_t lost_total;
} logger = {.json = true, .least = LOG_INFO, .fd = -1};

struct line {
    char text[LINE_MAX_BYTES];
    size_t length;
    size_t limit;
    bool overflow;
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

const char *log_level_name(enum log_level level) {
    return level_names[level];
}

uint64_t log_lost(void) {
    return logger.lost_total;
}

/* O_NONBLOCK belongs to the open description, which we share with whoever started us. A pipe or a
 * terminal can be opened anew, for us alone. Sockets have MSG_DONTWAIT, files do not block. */
static int reopen_stderr(void) {
    struct stat status;
    if (fstat(STDERR_FILENO, &status) != 0 ||
        !(S_ISFIFO(status.st_mode) || isatty(STDERR_FILENO))) {
        return -1;
    }
    return open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void log_setup(bool json, enum log_level least) {
    logger.json = json;
    logger.least = least;
    if (logger.fd >= 0) {
        (void)close(logger.fd);
    }
    logger.fd = reopen_stderr();
}

static void put(struct line *line, const char *bytes, size_t count) {
    if (count > line->limit - line->length) {
        line->overflow = true;
        return;
    }
    memcpy(line->text + line->length, bytes, count);
    line->length += count;
}

static void put_text(struct line *line, const char *text) {
    put(line, text, strlen(text));
}

static void put_number(struct line *line, int64_t number) {
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    put_text(line, digits);
}

/* The inside of a string; more than VALUE_MAX_BYTES is cut. */
static void put_escaped(struct line *line, const char *text) {
    size_t start = line->length;
    while (*text != '\0' && !line->overflow) {
        char form[TEXT_ESCAPED_MAX];
        size_t length;
        text += text_escape_one(text, form, &length);
        if (line->length - start + length > VALUE_MAX_BYTES) {
            put_text(line, "...");
            return;
        }
        put(line, form, length);
    }
}

static void put_quoted(struct line *line, const char *text) {
    put_text(line, "\"");
    put_escaped(line, text);
    put_text(line, "\"");
}

/* In text for people, words that cannot be misread go without quotes. */
static bool is_plain(const char *text) {
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text >= 0x7F || *text == '"' || *text == '\\' || *text == '=') {
            return false;
        }
    }
    return true;
}

static void put_field(struct line *line, const struct log_field *field) {
    put_text(line, logger.json ? "," : " ");
    if (logger.json) {
        put_quoted(line, field->name);
    } else {
        put_escaped(line, field->name);
    }
    put_text(line, logger.json ? ":" : "=");
    if (field->text == NULL) {
        put_number(line, field->number);
    } else if (logger.json || !is_plain(field->text)) {
        put_quoted(line, field->text);
    } else {
        put_escaped(line, field->text);
    }
}

static void put_time(struct line *line) {
    int64_t now_ns = clock_now().real_ns;
    time_t seconds = (time_t)(now_ns / NS_PER_S);
    struct tm utc;
    char text[64];
    if (gmtime_r(&seconds, &utc) == NULL) {
        memset(&utc, 0, sizeof utc);
    }
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text + length, sizeof text - length, ".%03dZ",
                   (int)(now_ns % NS_PER_S / NS_PER_MS));
    put_text(line, text);
}

static void put_head(struct line *line, enum log_level level, const char *event) {
    if (logger.json) {
        put_text(line, "{\"time\":\"");
        put_time(line);
        put_text(line, "\",\"level\":\"");
        put_text(line, level_names[level]);
        put_text(line, "\",\"event\":");
        put_quoted(line, event);
        return;
    }
    static const char *const padded[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};
    put_time(line);
    put_text(line, " ");
    put_text(line, padded[level]);
    put_text(line, " ");
    put_escaped(line, event);
}

static void put_tail(struct line *line, uint64_t fields_left_out) {
    line->limit = sizeof line->text;
    if (fields_left_out > 0) {
        put_field(line, &LOG_NUMBER("fields_left_out", fields_left_out));
    }
    if (logger.lost > 0) {
        put_field(line, &LOG_NUMBER("lines_lost", logger.lost));
    }
    put_text(line, logger.json ? "}\n" : "\n");
}

static ssize_t write_line(const char *bytes, size_t count) {
    if (logger.fd >= 0) {
        return write(logger.fd, bytes, count);
    }
    ssize_t sent = send(STDERR_FILENO, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK) {
        return sent;
    }
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(STDERR_FILENO, bytes, count);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count) {
    if (level < logger.least) {
        return;
    }
    struct line line;
    line.length = 0;
    line.limit = sizeof line.text - TAIL_BYTES;
    line.overflow = false;
    if (logger.cut) {
        put_text(&line, "\n");
    }
    put_head(&line, level, event);
    uint64_t left_out = 0;
    for (size_t i = 1; i < count; i++) {
        size_t before = line.length;
        put_field(&line, &fields[i]);
        if (line.overflow) {
            line.length = before;
            line.overflow = false;
            left_out++;
        }
    }
    put_tail(&line, left_out);

    ssize_t written = write_line(line.text, line.length);
    if (written == (ssize_t)line.length) {
        logger.lost = 0;
        logger.cut = false;
        return;
    }
    logger.cut = logger.cut || written > 0;
    logger.lost++;
    logger.lost_total++;
}

bool log_allow(struct log_limit *limit, int64_t every_ms, uint64_t *suppressed) {
    int64_t now_ns = clock_now().boot_ns;
    if (now_ns < limit->next_ns) {
        limit->suppressed++;
        return false;
    }
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    limit->next_ns = now_ns + every_ms * NS_PER_MS;
    return true;
}
