/* What a client of the Unix socket sends: the first byte says what the sidecar is and how the bytes
 * are cut into pieces, and whether the client ends its side. Whatever it is, each answer is a line
 * of printable characters, "leader" is said only by one that leads, and no client is left behind.
 */
#include "base/clock.h"
#include "base/log.h"
#include "publish/socket_parts.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static uv_loop_t loop;
static struct board_entry entries[2];
static struct board board;
static struct counters counters;
static struct socket_server *server;
static size_t doubts;

static void on_resign(void *context, size_t election) {
    (void)context;
    socket_resigned(server, election);
}

static void on_application(void *context, size_t election, enum app_event event, uint64_t token) {
    (void)context;
    (void)token;
    require(election < 2 && event <= APP_UNHEALTHY);
}

static void on_doubt(void *context, size_t election) {
    (void)context;
    doubts += election;
}

static char folder[] = "/tmp/gavel-fuzz-XXXXXX";
static char path[sizeof folder + 16];

static void remove_folder(void) {
    char lock[sizeof path + 8];
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    (void)unlink(path);
    (void)unlink(lock);
    (void)rmdir(folder);
}

static void listen_once(void) {
    if (server != NULL) {
        return;
    }
    signal(SIGPIPE, SIG_IGN);
    log_setup(true, LOG_ERROR);
    require(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/gavel.sock", folder);
    require(uv_loop_init(&loop) == 0);
    entries[0].name = "billing";
    entries[1].name = "mail";
    board = (struct board){.namespace_ = "default",
                           .identity = "pod-a",
                           .store_kind = "fake",
                           .mode = "correctness",
                           .entries = entries,
                           .count = 2,
                           .doubted = on_doubt};
    struct socket_setup setup = {.loop = &loop,
                                 .board = &board,
                                 .counters = &counters,
                                 .path = path,
                                 .mode = 0600,
                                 .resign = on_resign,
                                 .application = on_application,
                                 .ttl_ns = 10 * NS_PER_S};
    struct error error = {""};
    server = socket_create_limited(&setup, &socket_limits_default, &error);
    require(server != NULL);
    (void)atexit(remove_folder);
}

static void set_state(bool leads) {
    struct view view = {.state = leads ? STATE_LEADER : STATE_FOLLOWER,
                        .reason = leads ? REASON_RENEWED : REASON_HELD_BY_OTHER,
                        .valid_for_ns = 2 * NS_PER_S,
                        .token = leads ? 17 : 0};
    if (leads) {
        lease_extend(&view.lease, clock_now(), 3600 * NS_PER_S);
    }
    board_publish(&board, &entries[0], &view, true);
}

/* Everything that has been said until now. */
static void check_answers(int fd, bool leads) {
    static char text[1 << 16];
    ssize_t length = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    if (length <= 0) {
        return;
    }
    text[length] = '\0';
    for (const char *line = text; *line != '\0';) {
        size_t end = strcspn(line, "\n");
        for (size_t i = 0; i < end; i++) {
            require(line[i] >= ' ' && line[i] <= '~');
        }
        require(leads || strncmp(line, "leader", 6) != 0);
        line += end + (line[end] == '\n' ? 1 : 0);
    }
}

static void turn(int times) {
    for (int i = 0; i < times; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int ends[2];
    if (size == 0) {
        return 0;
    }
    listen_once();
    bool leads = (data[0] & 1) != 0;
    size_t piece = (data[0] >> 2) == 0 ? size : data[0] >> 2;
    board.count = (data[0] & 2) != 0 ? 2 : 1;
    set_state(leads);
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    (void)socket_client_create(server, ends[0]);
    for (size_t at = 1; at < size; at += piece) {
        size_t left = size - at;
        if (send(ends[1], data + at, left < piece ? left : piece, MSG_NOSIGNAL) < 0) {
            break;
        }
        turn(1);
        check_answers(ends[1], leads);
    }
    turn(2);
    set_state(!leads); /* watchers are told, an attached application too */
    turn(2);
    check_answers(ends[1], true);
    close(ends[1]);
    for (int i = 0; i < 100 && server->clients != NULL; i++) {
        turn(1);
    }
    require(server->clients == NULL);
    return 0;
}
