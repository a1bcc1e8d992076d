#ifndef GAVEL_BASE_ERROR_H
#define GAVEL_BASE_ERROR_H

/*
 * An error in words for people. The caller's memory. Never carries a secret.
 * Functions that take one write it only when they fail.
 */
struct error {
    char text[512];
};

void error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
