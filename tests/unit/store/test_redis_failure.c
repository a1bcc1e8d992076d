/* Errors of a server: what kind they are, and what people are told of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/failure.h"

#include <string.h>

static void errors_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum redis_failure failure;
    } errors[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", REDIS_FAILURE_NOSCRIPT},
        {"READONLY You can't write against a read only replica.", REDIS_FAILURE_NOT_MASTER},
        {"ERR Error running script (call to f_4f): @user_script:4: -READONLY You can't write "
         "against a read only slave.",
         REDIS_FAILURE_NOT_MASTER},
        {"READONLY You can't write against a read only replica. script: 4f, on @user_script:9.",
         REDIS_FAILURE_NOT_MASTER},
        {"GAVELNOTMASTER the server is not a master", REDIS_FAILURE_NOT_MASTER},
        {"MASTERDOWN Link with MASTER is down", REDIS_FAILURE_NOT_MASTER},
        {"NOAUTH Authentication required.", REDIS_FAILURE_AUTH},
        {"WRONGPASS invalid username-password pair", REDIS_FAILURE_AUTH},
        {"MOVED 3999 127.0.0.1:6381", REDIS_FAILURE_CLUSTER},
        {"ASK 3999 127.0.0.1:6381", REDIS_FAILURE_CLUSTER},
        {"CLUSTERDOWN Hash slot not served", REDIS_FAILURE_CLUSTER},
        {"CROSSSLOT Keys in request don't hash to the same slot", REDIS_FAILURE_CLUSTER},
        {"ERR unknown command 'EVALSHA', with args beginning with: ", REDIS_FAILURE_DENIED},
        {"NOPERM this user has no permissions to run the 'evalsha' command", REDIS_FAILURE_DENIED},
        {"LOADING Redis is loading the dataset in memory", REDIS_FAILURE_OTHER},
        {"BUSY Redis is busy running a script.", REDIS_FAILURE_OTHER},
        {"OOM command not allowed when used memory > 'maxmemory'.", REDIS_FAILURE_OTHER},
        {"ERR Error running script: @user_script: -OOM command not allowed", REDIS_FAILURE_OTHER},
        {"MISCONF Redis is configured to save RDB snapshots", REDIS_FAILURE_OTHER},
        {"ERR Error running script (call to f_4f): @user_script:9: -MISCONF Redis is configured",
         REDIS_FAILURE_OTHER},
        {"ERR Error running script (call to f_4f): @user_script:9: -NOREPLICAS Not enough good "
         "replicas to write.",
         REDIS_FAILURE_OTHER},
        {"ERR Error running script (call to f_4f): @user_script:9: -WRONGTYPE Operation against a "
         "key holding the wrong kind of value",
         REDIS_FAILURE_OTHER},
        {"ERR Error running script (call to f_4f): @user_script:9: -NOPERM this user has no "
         "permissions to run the 'info' command",
         REDIS_FAILURE_DENIED},
        {"ERR The user executing the script can't run this command or subcommand script: 4f, on "
         "@user_script:9.",
         REDIS_FAILURE_OTHER},
        {"OOM command not allowed when used memory > 'maxmemory'. script: 4f, on @user_script:9.",
         REDIS_FAILURE_OTHER},
        {"NOREPLICAS Not enough good replicas to write.", REDIS_FAILURE_OTHER},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REDIS_FAILURE_OTHER},
        {"ERR max number of clients reached", REDIS_FAILURE_OTHER},
        {"GAVELRECORD gavel:{MOVED/READONLY}:record is no hash", REDIS_FAILURE_OTHER},
        {"ERR some TASK is READONLYish", REDIS_FAILURE_OTHER},
        {"", REDIS_FAILURE_OTHER},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (redis_failure_of(errors[i].text) != errors[i].failure) {
            fail_msg("%s: class %d", errors[i].text, (int)redis_failure_of(errors[i].text));
        }
    }
}

static void texts_are_made_fit_for_people(void **state) {
    (void)state;
    char out[8];
    redis_failure_text(out, sizeof out, "a\x1b\n\xff", 4);
    assert_string_equal(out, "a???");
    redis_failure_text(out, sizeof out, "0123456789", 10);
    assert_string_equal(out, "0123456");
    redis_failure_text(out, sizeof out, "", 0);
    assert_string_equal(out, "");
}

static void errors_are_explained(void **state) {
    (void)state;
    static const struct {
        const char *text, *begins, *ends;
    } errors[] = {
        {"LOADING Redis is loading the dataset in memory", "LOADING", "in memory"},
        {"MOVED 3999 127.0.0.1:6381", "Redis Cluster: ", "mode (MOVED 3999 127.0.0.1:6381)"},
        {"ERR unknown command 'EVAL', with args beginning with: 'local a = 1' '2'",
         "gavel needs EVAL", "(ERR unknown command 'EVAL')"},
        {"NOPERM this user has no permissions to run the 'eval' command", "gavel needs EVAL",
         "run the 'eval' command)"},
        {"ERR The user executing the script can't access at least one of the keys mentioned in",
         "gavel needs EVAL", "mentioned in)"},
        {"ERR Error running script: Write commands not allowed after non deterministic commands",
         "this Redis is too old: gavel needs Redis 4 or later", "commands)"},
        {"ERR \x1b", "ERR ", "?"},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        char out[160];
        redis_failure_explain(out, sizeof out, errors[i].text);
        size_t length = strlen(out);
        size_t end = strlen(errors[i].ends);
        if (strncmp(out, errors[i].begins, strlen(errors[i].begins)) != 0 || length < end ||
            strcmp(out + length - end, errors[i].ends) != 0) {
            fail_msg("\"%s\"", out);
        }
    }
    char small[12];
    redis_failure_explain(small, sizeof small, "MOVED 1 a:1");
    assert_string_equal(small, "Redis Clust");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_told_apart),
        cmocka_unit_test(errors_are_explained),
        cmocka_unit_test(texts_are_made_fit_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
