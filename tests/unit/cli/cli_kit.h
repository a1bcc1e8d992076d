#ifndef GAVEL_TESTS_CLI_KIT_H
#define GAVEL_TESTS_CLI_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

/*
 * A sidecar that says what a test wants it to, in a process of its own, and a place for its
 * socket. For each connection there is one of the replies: it reads a line, then writes the text.
 */
struct fake_reply {
    const char *request; /* what the line has to be, without its end */
    const char *text;    /* written as it stands, then... */
    bool stays;          /* ...the connection stays until its peer ends it, or all is over */
    int delay_ms;        /* before the text */
    size_t size;         /* of the text; 0: up to its NUL */
};
#define ANSWER(request_, text_)                                                                    \
    { .request = (request_), .text = (text_) }

struct fake_sidecar {
    char folder[64];
    char socket[96];
    pid_t process;             /* 0: none */
    char out[8192], err[8192]; /* of the last run */
};

int fake_setup(void **state);
int fake_teardown(void **state);

/* Listens at once; after the last reply it stops listening and ends. */
void fake_start(struct fake_sidecar *fake, const struct fake_reply *replies, size_t count);
/* It ends by itself, all its requests were as expected. */
void fake_join(struct fake_sidecar *fake);

#define FAKE(fake, ...)                                                                            \
    fake_start((fake), (const struct fake_reply[]){__VA_ARGS__},                                   \
               sizeof((const struct fake_reply[]){__VA_ARGS__}) / sizeof(struct fake_reply))

/* Runs gavelctl's main with these arguments (ended by NULL) and "--socket PATH"; keeps what it
 * prints. Returns its exit status. */
int fake_run(struct fake_sidecar *fake, char *const *arguments);
/* The same without --socket; the variables ("NAME=VALUE", ended by NULL) are all it has. */
int fake_run_with(struct fake_sidecar *fake, char *const *arguments, char *const *environment);

#define RUN(fake, ...) fake_run((fake), (char *[]){__VA_ARGS__, NULL})

#endif
