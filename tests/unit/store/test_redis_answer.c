/* What a server says: the bounded reader, and the exact shapes of answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/redis/answer.h"
#include "store/redis/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SERVER "0123456789abcdef:fedcba9876543210"
#define NONCE "00112233445566778899aabbccddeeff"

/* The reply to these bytes; NULL when the reader breaks or wants more. */
static redisReply *read_bytes(const char *bytes, size_t size, size_t step) {
    struct redis_reader reader;
    redisReply *reply = NULL;
    enum redis_reader_result result = REDIS_READER_NONE;
    redis_reader_init(&reader);
    for (size_t at = 0; at < size && result == REDIS_READER_NONE; at += step) {
        size_t part = size - at < step ? size - at : step;
        redis_reader_feed(&reader, bytes + at, part);
        result = redis_reader_next(&reader, &reply);
    }
    redis_reader_finish(&reader);
    return reply;
}

struct reply_text {
    const char *members[12];
    size_t count;
};

static void write_answer(const struct reply_text *answer, char *out, size_t size) {
    int used = snprintf(out, size, "*%zu\r\n", answer->count);
    for (size_t i = 0; i < answer->count; i++) {
        const char *text = answer->members[i];
        int written = text == NULL ? snprintf(out + used, size - (size_t)used, "$-1\r\n")
                                   : snprintf(out + used, size - (size_t)used, "$%zu\r\n%s\r\n",
                                              strlen(text), text);
        used += written;
        assert_true((size_t)used < size);
    }
}

static bool understood(const struct reply_text *answer, enum store_event_type type,
                       struct store_reply *reply) {
    char bytes[2048];
    write_answer(answer, bytes, sizeof bytes);
    redisReply *parsed = read_bytes(bytes, strlen(bytes), sizeof bytes);
    assert_non_null(parsed);
    bool right = redis_answer_read(parsed, type, reply);
    freeReplyObject(parsed);
    return right;
}

static const struct reply_text granted = {{"yes", "1796157414879", "10000", "1796157414879123",
                                           SERVER, "0", "end", "none", "1796157410000000"},
                                          9};
static const struct reply_text granted_none = {
    {"yes", "1796157414879", "10000", "1796157414879123", "", "1", "none", "unknown-server", "0"},
    9};
static const struct reply_text renewed = {
    {"yes", "99999999999999", "10000", "1796157414879123", SERVER, "0"}, 6};
static const struct reply_text held = {{"held", "1796157414879", "10000", "1796157414879123",
                                        SERVER, "0", NONCE, "pod-b", "3456", "0"},
                                       10};
static const struct reply_text free_ = {{"free", "0", "0", "1796157414879123", SERVER, "0"}, 6};
static const struct reply_text foreign = {{"foreign", "7", "0", "1796157414879123", SERVER, "0"},
                                          6};

static void grant_is_read(void **state) {
    (void)state;
    struct store_reply reply;
    assert_true(understood(&granted, STORE_ACQUIRED, &reply));
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_true(reply.token == 1796157414879);
    assert_true(reply.longest_ttl_ns == 10 * NS_PER_S);
    assert_true(reply.server_now_us == 1796157414879123);
    assert_string_equal(reply.server, SERVER);
    assert_int_equal(reply.warnings, 0);
    assert_int_equal(reply.prior, PRIOR_END);
    assert_int_equal(reply.doubt, DOUBT_NONE);
    assert_true(reply.prior_end_us == 1796157410000000);

    assert_true(understood(&granted_none, STORE_ACQUIRED, &reply));
    assert_int_equal(reply.prior, PRIOR_NONE);
    assert_int_equal(reply.doubt, DOUBT_UNKNOWN_SERVER);
    assert_string_equal(reply.server, "");
    assert_int_equal(reply.warnings, WARNING_STORE_REPLICATED_ASYNC);

    struct reply_text clean = granted;
    clean.members[6] = "clean";
    clean.members[8] = "0";
    assert_true(understood(&clean, STORE_ACQUIRED, &reply));
    assert_int_equal(reply.prior, PRIOR_CLEAN);
}

static void renewal_is_read(void **state) {
    (void)state;
    struct store_reply reply;
    assert_true(understood(&renewed, STORE_RENEWED, &reply));
    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_true(reply.token == 99999999999999); /* 14 digits, exact */
    assert_true(understood(&renewed, STORE_RELEASED, &reply));
}

static void refusals_are_read(void **state) {
    (void)state;
    struct store_reply reply;
    const unsigned char nonce[NONCE_BYTES] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                              0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    assert_true(understood(&held, STORE_ACQUIRED, &reply));
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_int_equal(reply.reason, REASON_HELD_BY_OTHER);
    assert_true(reply.held);
    assert_true(reply.holder_nonce_known);
    assert_memory_equal(reply.holder_nonce, nonce, NONCE_BYTES);
    assert_string_equal(reply.holder, "pod-b");
    assert_true(reply.expires_in_ns == 3456 * NS_PER_MS);
    assert_true(understood(&held, STORE_RENEWED, &reply));
    assert_int_equal(reply.reason, REASON_RENEWAL_REFUSED);

    struct reply_text stuck = held;
    stuck.members[8] = "-1";
    stuck.members[9] = "1";
    assert_true(understood(&stuck, STORE_ACQUIRED, &reply));
    assert_true(reply.expires_in_ns < 0);
    assert_int_equal(reply.warnings, WARNING_KEY_WITHOUT_EXPIRY);

    assert_true(understood(&free_, STORE_ACQUIRED, &reply));
    assert_int_equal(reply.outcome, OUTCOME_NO);
    assert_false(reply.held);
    assert_true(understood(&foreign, STORE_RENEWED, &reply));
    assert_int_equal(reply.reason, REASON_FOREIGN_VALUE);
    assert_true(reply.held);
    assert_string_equal(reply.holder, "?");
    assert_false(reply.holder_nonce_known);
}

static void strange_holders_are_not_shown(void **state) {
    (void)state;
    static const char *const names[] = {"", "a b", "a\"b", "a'b", "a\x1b[2J", "a\xc3\xa9"};
    struct store_reply reply;
    struct reply_text answer = held;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        answer.members[7] = names[i];
        assert_true(understood(&answer, STORE_ACQUIRED, &reply));
        assert_string_equal(reply.holder, "?");
    }
    char longest[IDENTITY_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[IDENTITY_MAX + 1] = '\0';
    answer.members[7] = longest;
    assert_true(understood(&answer, STORE_ACQUIRED, &reply));
    assert_string_equal(reply.holder, "?");
    longest[IDENTITY_MAX] = '\0';
    assert_true(understood(&answer, STORE_ACQUIRED, &reply));
    assert_string_equal(reply.holder, longest);
}

/* Each member of each answer, replaced by what must not stand there. */
static void every_other_shape_is_refused(void **state) {
    (void)state;
    static const struct reply_text *const answers[] = {&granted, &granted_none, &renewed,
                                                       &held,    &free_,        &foreign};
    static const char *const bad[] = {NULL, "x", "1 ", "-2", "1.5", "99999999999999999", "YES"};
    const size_t holder = 7;
    const size_t server = 4;
    struct store_reply reply;
    for (size_t a = 0; a < sizeof answers / sizeof answers[0]; a++) {
        enum store_event_type type = a == 2 ? STORE_RENEWED : STORE_ACQUIRED;
        assert_true(understood(answers[a], type, &reply));
        for (size_t m = 0; m < answers[a]->count; m++) {
            for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
                bool any_text = m == server || (answers[a] == &held && m == holder);
                struct reply_text changed = *answers[a];
                changed.members[m] = bad[b];
                if ((!any_text || bad[b] == NULL) && understood(&changed, type, &reply)) {
                    fail_msg("answer %zu, member %zu, \"%s\" was accepted", a, m, bad[b]);
                }
            }
        }
        struct reply_text changed = *answers[a];
        changed.members[changed.count++] = "0";
        assert_false(understood(&changed, type, &reply));
        for (changed.count = 0; changed.count < answers[a]->count; changed.count++) {
            assert_false(understood(&changed, type, &reply));
        }
        assert_int_equal(reply.outcome, OUTCOME_UNSURE);
    }
}

static void contradictions_are_refused(void **state) {
    (void)state;
    struct store_reply reply;
    struct reply_text answer = granted;
    answer.members[1] = "0"; /* a grant without a token */
    assert_false(understood(&answer, STORE_ACQUIRED, &reply));
    answer.members[1] = "100000000000001"; /* above 10^14 */
    assert_false(understood(&answer, STORE_ACQUIRED, &reply));
    answer = granted;
    answer.members[6] = "clean"; /* with an end */
    assert_false(understood(&answer, STORE_ACQUIRED, &reply));
    answer = granted_none;
    answer.members[7] = "none"; /* no proof, and no doubt */
    assert_false(understood(&answer, STORE_ACQUIRED, &reply));
    assert_false(understood(&granted, STORE_RENEWED, &reply)); /* the answer to another script */
    assert_false(understood(&renewed, STORE_ACQUIRED, &reply));
    answer = granted;
    answer.members[4] = "0123456789012345678901234567890123456789012345678901234567890123456789"
                        "01234567890123456789012345"; /* 96: too long */
    assert_false(understood(&answer, STORE_ACQUIRED, &reply));
}

#define REST "$5\r\n10000\r\n$16\r\n1796157414879123\r\n$0\r\n\r\n$1\r\n0\r\n"

static void other_types_are_refused(void **state) {
    (void)state;
    static const char *const replies[] = {
        "+OK\r\n",
        "+yes\r\n",
        ":1\r\n",
        "$2\r\nOK\r\n",
        "*0\r\n",
        "*-1\r\n",
        "$-1\r\n",
        "*2\r\n:1\r\n$-1\r\n",
        "-ERR no\r\n",
        "*6\r\n$3\r\nyes\r\n:5\r\n" REST,
        "*6\r\n+yes\r\n$1\r\n5\r\n" REST,
        "*6\r\n*1\r\n$3\r\nyes\r\n$1\r\n5\r\n" REST,
    };
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        struct store_reply reply;
        redisReply *parsed = read_bytes(replies[i], strlen(replies[i]), 4096);
        assert_non_null(parsed);
        assert_false(redis_answer_read(parsed, STORE_RENEWED, &reply));
        assert_int_equal(reply.outcome, OUTCOME_UNSURE);
        freeReplyObject(parsed);
    }
}

static void pieces_make_the_same_reply(void **state) {
    (void)state;
    char bytes[2048];
    struct store_reply whole;
    struct store_reply pieces;
    assert_true(understood(&held, STORE_ACQUIRED, &whole));
    write_answer(&held, bytes, sizeof bytes);
    redisReply *parsed = read_bytes(bytes, strlen(bytes), 1);
    assert_non_null(parsed);
    assert_true(redis_answer_read(parsed, STORE_ACQUIRED, &pieces));
    freeReplyObject(parsed);
    assert_memory_equal(&whole, &pieces, sizeof whole);
}

/* Feeds it in pieces of 16 KiB until the reader breaks. */
static bool breaks(const char *head, size_t filler) {
    static char piece[16384];
    struct redis_reader reader;
    redisReply *reply = NULL;
    bool broken = false;
    memset(piece, 'x', sizeof piece);
    redis_reader_init(&reader);
    redis_reader_feed(&reader, head, strlen(head));
    for (size_t sent = 0; !broken && sent <= filler; sent += sizeof piece) {
        enum redis_reader_result result;
        while ((result = redis_reader_next(&reader, &reply)) == REDIS_READER_REPLY) {
            freeReplyObject(reply);
        }
        broken = result == REDIS_READER_BROKEN;
        if (!broken && sent < filler) {
            redis_reader_feed(&reader, piece, sizeof piece);
        }
    }
    assert_true(!broken || reader.problem != NULL);
    redis_reader_finish(&reader);
    return broken;
}

static void hostile_bytes_break_the_reader(void **state) {
    (void)state;
    assert_true(breaks("*1073741824\r\n", 0));
    assert_true(breaks("*2147483647\r\n", 0));
    assert_true(breaks("*1025\r\n", 0));
    assert_true(breaks("*-2\r\n", 0));
    assert_true(breaks("*99999999999999999999\r\n", 0));
    assert_true(breaks("*1\r\n*1\r\n*1\r\n*1\r\n", 0));
    assert_true(breaks("*2\r\n*600\r\n$-1\r\n*600\r\n", 0) ||
                breaks("*2\r\n*1024\r\n", 0)); /* in sum */
    assert_true(breaks("$9999999999\r\n", 1 << 20));
    assert_true(breaks("$67108864\r\n", 1 << 20));
    assert_true(breaks("+", 1 << 20));
    assert_true(breaks("?what\r\n", 0));
    assert_true(breaks("HTTP/1.1 400 Bad Request\r\n", 0));
    assert_false(breaks("$60000\r\n", 49152)); /* large, but not too large */
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_true(usage.ru_maxrss < 512 * 1024); /* KiB; nothing was kept for what was announced */
}

static void random_bytes_do_no_harm(void **state) {
    (void)state;
    static const char alphabet[] = "*$+-:0123456789\r\n\r\n\r\nOKyes";
    unsigned seed = 1;
    for (int round = 0; round < 5000; round++) {
        char bytes[256];
        size_t size = (size_t)(rand_r(&seed) % (int)sizeof bytes);
        for (size_t i = 0; i < size; i++) {
            size_t any = (size_t)rand_r(&seed);
            if (round % 2 == 0) {
                memcpy(&bytes[i], &any, 1);
            } else {
                bytes[i] = alphabet[any % (sizeof alphabet - 1)];
            }
        }
        redisReply *reply = read_bytes(bytes, size, 1 + (size_t)(rand_r(&seed) % 16));
        struct store_reply ignored;
        if (reply != NULL) {
            assert_false(redis_answer_read(reply, STORE_ACQUIRED, &ignored));
            freeReplyObject(reply);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grant_is_read),
        cmocka_unit_test(renewal_is_read),
        cmocka_unit_test(refusals_are_read),
        cmocka_unit_test(strange_holders_are_not_shown),
        cmocka_unit_test(every_other_shape_is_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(other_types_are_refused),
        cmocka_unit_test(pieces_make_the_same_reply),
        cmocka_unit_test(hostile_bytes_break_the_reader),
        cmocka_unit_test(random_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
