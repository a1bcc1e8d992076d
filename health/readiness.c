#include "health/readiness.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_warnings(FILE *out, const char *subject, uint32_t warnings) {
    for (unsigned bit = 0; bit < WARNING_COUNT; bit++) {
        if ((warnings >> bit & 1U) != 0) {
            fprintf(out, "[!] %s: %s\n", subject, warning_name(bit));
        }
    }
}

/* One line for each server of a store that has several. */
static void write_nodes(FILE *out, const char *nodes) {
    while (*nodes != '\0') {
        int length = (int)strcspn(nodes, "\n");
        fprintf(out, "[i] node %.*s\n", length, nodes);
        nodes += length;
        nodes += *nodes == '\n' ? 1 : 0;
    }
}

static void write_election(FILE *out, const struct board_entry *entry, struct instant now) {
    struct handouts scratch = entry->handouts;
    struct answer answer = view_answer(&entry->view, now, &scratch);
    fprintf(out, "[i] election %s: %s (%s)\n", entry->name, election_state_name(answer.state),
            election_reason_name(answer.reason));
    write_warnings(out, entry->name, entry->view.warnings);
}

char *readiness_text(bool ready, const struct board *board, const struct counters *counters,
                     const struct store_status *store, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL) {
        abort(); /* out of memory */
    }
    fputs(ready ? "[+] listeners: up\n" : "[-] listeners: not up yet, or the process drains\n",
          out);
    fprintf(out, "[i] store %s: %s%s%s%s%s\n", board->store_kind, store->up ? "up" : "down",
            store->version[0] != '\0' ? ", " : "", store->version,
            store->problem[0] != '\0' ? ", last problem: " : "", store->problem);
    write_nodes(out, store->nodes);
    fprintf(out, "[i] loop: lag %.1f ms, stalls %" PRIu64 "\n", counters->loop_lag_s * 1e3,
            counters->loop_stalls);
    struct instant now = clock_now();
    for (size_t i = 0; i < board->count; i++) {
        write_election(out, &board->entries[i], now);
    }
    write_warnings(out, "process", board->process_warnings);
    fputs(ready ? "ok\n" : "not ready\n", out);
    if (fclose(out) != 0) {
        abort(); /* out of memory */
    }
    return text;
}
