/* What a PostgreSQL server may say of itself before anything is locked: results with the columns
 * that are asked for, a cell a line; the first byte says how the sidecar is set up. A verdict
 * always has a text of one printable line, and nothing is passed without a whole identity. */
#include "store/postgres/gate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

struct input {
    char *rest; /* the lines that are left; NULL: none */
};

static const char *take_line(struct input *input) {
    const char *line = strsep(&input->rest, "\n");
    return line != NULL ? line : "";
}

/* A line "~" is a NULL; one row, or as many as `rows`. */
static PGresult *take_result(struct input *input, const char *const *columns, int rows) {
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc descriptions[16] = {{0}};
    int width = 0;
    require(result != NULL);
    for (; columns[width] != NULL; width++) {
        descriptions[width].name = (char *)(uintptr_t)columns[width];
    }
    require(PQsetResultAttrs(result, width, descriptions) == 1);
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < width; i++) {
            const char *line = take_line(input);
            int length = strcmp(line, "~") == 0 ? -1 : (int)strlen(line);
            require(PQsetvalue(result, row, i, (char *)(uintptr_t)line, length) == 1);
        }
    }
    return result;
}

static void check_verdict(bool good, const struct pg_verdict *verdict) {
    require(memchr(verdict->text, '\0', sizeof verdict->text) != NULL);
    require(good || verdict->text[0] != '\0');
    for (const char *at = verdict->text; *at != '\0'; at++) {
        require(*at >= ' ' && *at <= '~');
    }
}

static void play(struct pg_gate *gate, struct input *input, unsigned rows) {
    static const char *const facts[] = {"pid",      "backend",  "recovery", "read_only", "version",
                                        "identity", "database", "held",     "role",      NULL};
    static const char *const table[] = {"kind",    "persistence", "granted", "usage",
                                        "creates", "columns",     NULL};
    static const char *const sequence[] = {"sequence", "persistence", "cache", "step",
                                           "cycle",    "granted",     NULL};
    static const char *const settings[] = {"settings", "setting", NULL};
    struct pg_answers answers = {.failed = false};
    answers.list[answers.count++] = take_result(input, facts, (int)(rows % 3));
    answers.list[answers.count++] = take_result(input, table, (int)(rows / 3 % 2));
    answers.list[answers.count++] = take_result(input, sequence, 1);
    answers.list[answers.count++] = take_result(input, settings, 7);
    bool (*const checks[])(struct pg_gate *, const struct pg_answers *,
                           struct pg_verdict *) = {pg_check_facts, pg_check_second, pg_check_same};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct pg_verdict verdict = {.text = ""};
        bool good = checks[i](gate, &answers, &verdict);
        check_verdict(good, &verdict);
        if (good && i == 0) {
            require(gate->place.identity[0] != '\0' && gate->place.database[0] != '\0');
            require(gate->place.backend[0] != '\0' && gate->place.pid > 0);
            require(memchr(gate->place.identity, '\0', sizeof gate->place.identity) != NULL);
        }
    }
    struct pg_verdict verdict = {.text = ""};
    check_verdict(pg_check_settings(gate, &answers, &verdict), &verdict);
    for (size_t i = 0; i < answers.count; i++) {
        PQclear((PGresult *)(uintptr_t)answers.list[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    unsigned how = data[0];
    struct store_postgres options = {.sequence = (how & 1) != 0 ? "tokens" : NULL,
                                     .transaction = (how & 2) != 0,
                                     .session_pooler = (how & 4) != 0};
    struct store_setup setup = {
        .ttl_ns = 10 * NS_PER_S, .margin_ns = 2 * NS_PER_S, .postgres = &options};
    struct pg_plan plan;
    struct pg_link link = {.conn = NULL};
    struct pg_gate gate = {.plan = &plan, .link = &link};
    char *text = malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    pg_plan_init(&plan, &setup);
    play(&gate, &(struct input){.rest = text}, how >> 3);
    pg_plan_finish(&plan);
    free(text);
    return 0;
}
