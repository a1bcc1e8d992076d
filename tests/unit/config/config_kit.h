#ifndef GAVEL_TESTS_CONFIG_KIT_H
#define GAVEL_TESTS_CONFIG_KIT_H

#include "config/config.h"
#include "config/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The two stores that there are in these tests: redis://..., local:... A URL with "wrong" in it is
 * refused. */

#define MS INT64_C(1000000)
#define S (1000 * MS)

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})
#define NO_WORDS ((char *[]){NULL})

/* What a load made of it. */
struct loaded {
    struct config config;
    struct config_report report;
    enum config_result result;
};

/* Lists end with NULL. A runtime directory is always given. */
void load(struct loaded *loaded, char *const *arguments, char *const *environment);
/* The same, with a store and an election before the arguments. */
void load_with(struct loaded *loaded, char *const *arguments, char *const *environment);
void unload(struct loaded *loaded);

/* Nothing is wrong; shows what is. */
void assert_good(const struct loaded *loaded);
/* Just this one error, and it holds all of these words (ended by NULL). */
void assert_one_error(const struct loaded *loaded, char *const *words);
bool has_line(const struct config_list *list, const char *part);

#endif
