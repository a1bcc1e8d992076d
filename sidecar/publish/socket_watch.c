#include "publish/socket_parts.h"

#include "base/clock.h"

#include <string.h>

#define SEND_BUFFER 4096 /* lines that wait in the kernel are old lines */
/* How often to look at a leader's view that the clocks do not bear out. */
#define RECHECK_LEAST_NS (10 * NS_PER_MS)
#define RECHECK_MOST_NS (250 * NS_PER_MS)

/* When the next line is due, without any change. */
static int64_t next_push_ns(const struct view *view, const struct answer *answer) {
    if (answer->leader) {
        /* Whole milliseconds: halving them comes to an end. */
        return answer->deadline_ns - answer->valid_ns / 2;
    }
    if (view->state != STATE_LEADER) {
        return NEVER_NS;
    }
    /* In doubt: a renewal, which is no change to the core, may bring the answer back. */
    int64_t recheck_ns = view->valid_for_ns / 2;
    recheck_ns = recheck_ns < RECHECK_LEAST_NS ? RECHECK_LEAST_NS : recheck_ns;
    return clock_now().boot_ns + (recheck_ns > RECHECK_MOST_NS ? RECHECK_MOST_NS : recheck_ns);
}

static void arm_push(struct socket_client *client) {
    if (client->push_ns == NEVER_NS) {
        uv_timer_stop(&client->timer);
        return;
    }
    int64_t left_ns = client->push_ns - clock_now().boot_ns;
    int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    socket_client_arm(client, (uint64_t)left_ms);
}

void socket_watch_push(struct socket_client *client) {
    if (client->unsent != NULL) {
        client->stale = true;
        return;
    }
    client->stale = false;
    struct answer answer = socket_answer(client, client->entry);
    char line[SOCKET_CHECK_LINE_SIZE];
    size_t length = socket_check_line(client, client->entry, &answer, line, sizeof line);
    client->push_ns = next_push_ns(&client->entry->view, &answer);
    /* A follower's line is news only when it differs. */
    if (answer.leader || strcmp(line, client->pushed) != 0) {
        memcpy(client->pushed, line, length + 1);
        socket_client_send(client, line, length);
    }
    if (client->phase == PHASE_WATCHING && client->unsent == NULL) {
        arm_push(client);
    }
}

void socket_watch_flushed(struct socket_client *client) {
    if (client->stale) {
        socket_watch_push(client);
    } else {
        arm_push(client);
    }
}

void socket_watch_start(struct socket_client *client, struct board_entry *entry) {
    int size = SEND_BUFFER;
    uv_send_buffer_size((uv_handle_t *)&client->pipe, &size); /* where refused: more old lines */
    socket_client_set_phase(client, PHASE_WATCHING);
    client->entry = entry;
    client->pushed[0] = '\0';
    socket_client_count(client, CODE_OK);
    socket_watch_push(client);
}
