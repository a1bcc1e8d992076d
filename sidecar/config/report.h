#ifndef GAVEL_CONFIG_REPORT_H
#define GAVEL_CONFIG_REPORT_H

#include "config/config.h"

/* Adds "KEY SHOWN: text" to the errors; `shown` may be NULL. */
void report_error(struct config_report *report, const char *key, const char *shown,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* An error in the command line itself: the whole line is the text. */
void report_usage(struct config_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* No more than WARNINGS_MOST are kept. */
#define WARNINGS_MOST 50
void report_warning(struct config_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
