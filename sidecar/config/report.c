#include "config/report.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

static char *format_text(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static char *format_text(const char *format, va_list arguments) {
    char *text;
    if (vasprintf(&text, format, arguments) < 0) {
        abort();
    }
    return text;
}

static void add(struct config_list *list, char *line) {
    list->lines = memory_grow(list->lines, list->count + 1, sizeof *list->lines);
    list->lines[list->count++] = line;
}

void report_error(struct config_report *report, const char *key, const char *shown,
                  const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(format, arguments);
    va_end(arguments);
    char *line;
    if (asprintf(&line, "%s%s%s: %s", key, shown != NULL ? " " : "", shown != NULL ? shown : "",
                 text) < 0) {
        abort();
    }
    free(text);
    add(&report->errors, line);
}

void report_usage(struct config_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(&report->errors, format_text(format, arguments));
    va_end(arguments);
    report->usage = true;
}

void report_warning(struct config_report *report, const char *format, ...) {
    if (report->warnings.count == WARNINGS_MOST) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    add(&report->warnings, format_text(format, arguments));
    va_end(arguments);
}

int config_report_print(const struct config_report *report, const char *program, FILE *out) {
    for (size_t i = 0; i < report->errors.count; i++) {
        (void)fprintf(out, "%s: %s\n", program, report->errors.lines[i]);
    }
    for (size_t i = 0; i < report->warnings.count; i++) {
        (void)fprintf(out, "%s: warning: %s\n", program, report->warnings.lines[i]);
    }
    return report->usage ? EX_USAGE : EX_CONFIG;
}

static void list_finish(struct config_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->lines[i]);
    }
    free(list->lines);
    *list = (struct config_list){.lines = NULL};
}

void config_report_finish(struct config_report *report) {
    list_finish(&report->errors);
    list_finish(&report->warnings);
}
