/*
 * bench_ask one  line|http ROUNDS BLOCK ADDRESS QUESTION ADDRESS QUESTION
 * bench_ask many line|http CLIENTS WINDOWS WINDOW_MS ADDRESS QUESTION ADDRESS QUESTION
 *
 * Asks two servers in turn, from one process. "one": a blocking question at a time, BLOCK of them
 * to one server, then as many to the other, ROUNDS times; a line "TARGET NS" for each. "many": all
 * CLIENTS have a question under way, for WINDOW_MS at one server, then at the other, WINDOWS times;
 * a line "TARGET ANSWERED_A_SECOND" for each window. In a QUESTION \n and \r are escapes.
 */
#include "ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_MOST 10000

static char *unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++, to++) {
        bool escaped = from[0] == '\\' && (from[1] == 'n' || from[1] == 'r');
        *to = escaped ? (from[1] == 'n' ? '\n' : '\r') : *from;
        from += escaped;
    }
    *to = '\0';
    return text;
}

static struct target target_of(char **words, bool http) {
    char *question = unescape(words[1]);
    return (struct target){words[0], http, question, strlen(question)};
}

static void ask_once(const struct target *target, int fd) {
    char buffer[2048];
    size_t length = 0;
    if (write(fd, target->question, target->question_length) != (ssize_t)target->question_length) {
        exit(1);
    }
    do {
        ssize_t got = read(fd, buffer + length, sizeof buffer - 1 - length);
        if (got <= 0) {
            (void)fprintf(stderr, "%s: closed\n", target->address);
            exit(1);
        }
        length += (size_t)got;
        buffer[length] = '\0';
    } while (target_answer_end(target, buffer, length) == 0);
}

static void ask_one(const struct target targets[2], unsigned rounds, unsigned block) {
    static int64_t took_ns[BLOCK_MOST];
    int fds[2] = {target_connect(&targets[0]), target_connect(&targets[1])};
    for (unsigned round = 0; round < rounds * 2; round++) {
        unsigned which = round % 2;
        for (unsigned i = 0; i < block; i++) {
            int64_t begun_ns = now_ns();
            ask_once(&targets[which], fds[which]);
            took_ns[i] = now_ns() - begun_ns;
        }
        /* The first tenth only brings the caches back. */
        for (unsigned i = block / 10; i < block; i++) {
            (void)printf("%u %" PRId64 "\n", which, took_ns[i]);
        }
    }
}

static void ask_many(const struct target targets[2], unsigned clients, unsigned windows,
                     int64_t window_ns) {
    struct crowd *crowds[2] = {crowd_create(&targets[0], clients),
                               crowd_create(&targets[1], clients)};
    for (unsigned window = 0; window < windows * 2; window++) {
        uint64_t answered = crowd_ask(crowds[window % 2], window_ns);
        (void)printf("%u %.0f\n", window % 2, (double)answered * 1e9 / (double)window_ns);
    }
}

int main(int argc, char **argv) {
    bool many = argc > 1 && strcmp(argv[1], "many") == 0;
    if (argc != (many ? 10 : 9)) {
        return 64;
    }
    bool http = strcmp(argv[2], "http") == 0;
    struct target targets[2] = {target_of(argv + argc - 4, http), target_of(argv + argc - 2, http)};
    unsigned first = (unsigned)strtoul(argv[3], NULL, 10);
    unsigned second = (unsigned)strtoul(argv[4], NULL, 10);
    if (many) {
        ask_many(targets, first, second, strtoll(argv[5], NULL, 10) * 1000000);
    } else if (second <= BLOCK_MOST) {
        ask_one(targets, first, second);
    } else {
        return 64;
    }
    return 0;
}
