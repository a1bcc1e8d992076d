#ifndef GAVEL_BASE_LOG_H
#define GAVEL_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One event a line on stderr: JSON, or text for people. Event names are a stable interface.
 * A line is built on the stack and written with one write(2); a line that cannot be written at
 * once is dropped and counted (a full pipe must not stop the loop: stderr is put into
 * non-blocking mode only where that cannot leak to other processes). Loop thread only.
 */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *name;
    const char *text; /* NULL: number */
    int64_t number;
};

#define LOG_TEXT(name_, text_) ((struct log_field){.name = (name_), .text = (text_)})
#define LOG_NUMBER(name_, number_)                                                                 \
    ((struct log_field){.name = (name_), .number = (int64_t)(number_)})

/* log_event(LOG_INFO, "listening", LOG_TEXT("address", "127.0.0.1"), LOG_NUMBER("port", 4040)) */
#define log_event(level, event, ...)                                                               \
    log_write((level), (event), (const struct log_field[]){{.name = "event"}, ##__VA_ARGS__},      \
              sizeof((const struct log_field[]){{.name = "event"}, ##__VA_ARGS__}) /               \
                  sizeof(struct log_field))

void log_setup(bool json, enum log_level least);
/* "debug", "info", "warn", "error". */
const char *log_level_name(enum log_level level);
/* Lines that could not be written, since the start; the next line that can says how many. */
uint64_t log_lost(void);
/* fields[0] is the placeholder that log_event() puts there. Use log_event(). */
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count);

/* Rate limit for what repeats: true when the event may be logged now, at most once in
 * `every_ms`; *suppressed counts what was left out since. */
struct log_limit {
    int64_t next_ns;
    uint64_t suppressed;
};
bool log_allow(struct log_limit *limit, int64_t every_ms, uint64_t *suppressed);

#endif
