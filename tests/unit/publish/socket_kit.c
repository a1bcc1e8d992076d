#include "socket_kit.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void on_resign(void *context, size_t election) {
    struct rig *rig = context;
    rig->resigns[election]++;
    if (rig->resigns_at_once) {
        socket_resigned(rig->server, election);
    }
}

static void on_application(void *context, size_t election, enum app_event event, uint64_t token) {
    struct rig *rig = context;
    rig->heard[election][event]++;
    rig->done_token = event == APP_DONE ? token : rig->done_token;
}

static void on_doubt(void *context, size_t election) {
    struct rig *rig = context;
    rig->doubts[election]++;
}

struct rig *rig_create(void) {
    signal(SIGPIPE, SIG_IGN);
    log_setup(true, LOG_ERROR);
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    snprintf(rig->folder, sizeof rig->folder, "/tmp/gavel-socket-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->path, sizeof rig->path, "%s/gavel.sock", rig->folder);
    rig->mode = 0660;
    rig->limits = socket_limits_default;
    rig->limits.clients = 256; /* both ends are in this process */
    rig->limits.watchers = 128;
    rig->entries[0].name = "billing";
    rig->entries[1].name = "mail";
    rig->board = (struct board){.namespace_ = "default",
                                .identity = "pod-a",
                                .store_kind = "fake",
                                .mode = "correctness",
                                .entries = rig->entries,
                                .count = 1,
                                .doubted = on_doubt,
                                .context = rig};
    return rig;
}

void rig_listen(struct rig *rig) {
    struct socket_setup setup = {.loop = &rig->loop,
                                 .board = &rig->board,
                                 .counters = &rig->counters,
                                 .path = rig->path,
                                 .mode = rig->mode,
                                 .resign = on_resign,
                                 .application = on_application,
                                 .ttl_ns = 10 * NS_PER_S,
                                 .context = rig};
    struct error error = {""};
    size_t count = rig->board.count;
    rig->board.count = 2; /* as many as a test may add later */
    rig->server = socket_create_limited(&setup, &rig->limits, &error);
    rig->board.count = count;
    if (rig->server == NULL) {
        fail_msg("%s", error.text);
    }
}

void rig_add_election(struct rig *rig) {
    rig->board.count = 2;
}

static void on_closed(void *context) {
    struct rig *rig = context;
    assert_false(rig->closed);
    rig->closed = true;
}

void rig_close_server(struct rig *rig) {
    rig->closed = false;
    socket_close(rig->server, on_closed, rig);
    assert_false(rig->closed);
    rig->server = NULL;
    RIG_UNTIL(rig, rig->closed);
}

/* Whatever is left in the folder but lock files and sockets that a test put there is a leak. */
static void remove_folder(const struct rig *rig) {
    DIR *folder = opendir(rig->folder);
    assert_non_null(folder);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", rig->folder, entry->d_name);
        if (strncmp(entry->d_name, ".gavel-", 7) == 0) {
            fail_msg("%s was left behind", path);
        }
        if (entry->d_name[0] != '.') {
            unlink(path);
        }
    }
    closedir(folder);
    assert_int_equal(rmdir(rig->folder), 0);
}

void rig_destroy(struct rig *rig) {
    if (rig->server != NULL) {
        rig_close_server(rig);
    }
    assert_null(rig->board.observers);
    assert_int_equal(rig->counters.watchers, 0);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    remove_folder(rig);
    free(rig);
}

int rig_setup(void **state) {
    struct rig *rig = rig_create();
    rig_listen(rig);
    *state = rig;
    return 0;
}

int rig_teardown(void **state) {
    rig_destroy(*state);
    return 0;
}

void rig_lead(struct rig *rig, size_t election, uint64_t token, int64_t good_for_ns, bool changed) {
    struct view view = rig->entries[election].view;
    view.state = STATE_LEADER;
    view.reason = REASON_RENEWED;
    view.token = token;
    view.valid_for_ns = 2 * NS_PER_S;
    view.holder[0] = '\0';
    view.lease = (struct lease){0};
    lease_extend(&view.lease, clock_now(), good_for_ns);
    board_publish(&rig->board, &rig->entries[election], &view, changed);
}

void rig_follow(struct rig *rig, size_t election, const char *holder) {
    struct view view = rig->entries[election].view;
    view.state = STATE_FOLLOWER;
    view.reason = REASON_HELD_BY_OTHER;
    snprintf(view.holder, sizeof view.holder, "%s", holder);
    board_publish(&rig->board, &rig->entries[election], &view, true);
}

void rig_state(struct rig *rig, size_t election, enum election_state state) {
    struct view view = rig->entries[election].view;
    view.state = state;
    board_publish(&rig->board, &rig->entries[election], &view, true);
}

int64_t test_now_ms(void) {
    return clock_now().boot_ns / NS_PER_MS;
}

void rig_turn(struct rig *rig) {
    uv_run(&rig->loop, UV_RUN_NOWAIT);
    struct pollfd wait = {.fd = uv_backend_fd(&rig->loop), .events = POLLIN};
    int timeout_ms = uv_backend_timeout(&rig->loop);
    poll(&wait, 1, timeout_ms < 0 || timeout_ms > 2 ? 2 : timeout_ms);
}

void rig_run_for(struct rig *rig, int64_t ms) {
    int64_t end_ms = test_now_ms() + ms;
    while (test_now_ms() < end_ms) {
        rig_turn(rig);
    }
}

size_t rig_clients(const struct rig *rig, enum socket_phase phase) {
    return rig->server->phases[phase];
}

struct peer *peer_connect(struct rig *rig) {
    struct peer *peer = calloc(1, sizeof *peer);
    assert_non_null(peer);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(rig->path) < sizeof address.sun_path);
    memcpy(address.sun_path, rig->path, strlen(rig->path));
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(peer->fd >= 0);
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&address, sizeof address), 0);
    return peer;
}

void peer_close(struct peer *peer) {
    close(peer->fd);
    free(peer);
}

void peer_send_bytes(struct peer *peer, const void *bytes, size_t length) {
    assert_int_equal(send(peer->fd, bytes, length, MSG_NOSIGNAL), length);
}

void peer_send(struct peer *peer, const char *text) {
    peer_send_bytes(peer, text, strlen(text));
}

void peer_read(struct peer *peer) {
    while (!peer->ended && peer->length < sizeof peer->text) {
        ssize_t count =
            recv(peer->fd, peer->text + peer->length, sizeof peer->text - peer->length, 0);
        if (count > 0) {
            peer->length += (size_t)count;
        } else if (count == 0 || errno != EAGAIN) {
            peer->ended = true;
        } else {
            return;
        }
    }
}

bool peer_has_line(struct peer *peer) {
    peer_read(peer);
    return memchr(peer->text, '\n', peer->length) != NULL;
}

const char *peer_line(struct rig *rig, struct peer *peer) {
    static char line[sizeof peer->text];
    RIG_UNTIL(rig, peer_has_line(peer) || peer->ended);
    const char *end = memchr(peer->text, '\n', peer->length);
    if (end == NULL) {
        return "(ended)";
    }
    size_t length = (size_t)(end - peer->text);
    memcpy(line, peer->text, length);
    line[length] = '\0';
    peer->length -= length + 1;
    memmove(peer->text, end + 1, peer->length);
    return line;
}

void peer_expect_end(struct rig *rig, struct peer *peer) {
    RIG_UNTIL(rig, (peer_read(peer), peer->ended));
    assert_int_equal(peer->length, 0);
}

void peer_ask(struct rig *rig, struct peer *peer, const char *text, const char *line) {
    peer_send(peer, text);
    assert_string_equal(peer_line(rig, peer), line);
}

void peer_expect_prefix(struct rig *rig, struct peer *peer, const char *prefix) {
    const char *line = peer_line(rig, peer);
    if (strncmp(line, prefix, strlen(prefix)) != 0) {
        fail_msg("\"%s\" does not start with \"%s\"", line, prefix);
    }
}

struct leader_line peer_expect_leader(struct rig *rig, struct peer *peer) {
    const char *line = peer_line(rig, peer);
    unsigned long long numbers[3] = {0};
    bool fits = strncmp(line, "leader", 6) == 0;
    const char *at = line + 6;
    for (size_t i = 0; i < 3 && fits; i++) {
        char *end;
        fits = at[0] == ' ' && at[1] >= '0' && at[1] <= '9';
        numbers[i] = strtoull(at, &end, 10);
        at = end;
    }
    if (!fits || *at != '\0') {
        fail_msg("\"%s\" is no leader's line", line);
    }
    return (struct leader_line){numbers[0], (int64_t)numbers[1], (int64_t)numbers[2]};
}
