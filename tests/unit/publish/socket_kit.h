#ifndef GAVEL_TESTS_SOCKET_KIT_H
#define GAVEL_TESTS_SOCKET_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish/socket_parts.h"

/* A socket server on a real loop in a folder of its own, and clients of it in the same process. */
struct rig {
    uv_loop_t loop;
    struct board board;
    struct board_entry entries[2];
    struct counters counters;
    struct socket_limits limits;
    struct socket_server *server;
    char folder[64];
    char path[96];
    unsigned mode;
    unsigned resigns[2]; /* how often each election was asked to resign */
    bool resigns_at_once;
    unsigned doubts[2];
    unsigned heard[2][APP_UNHEALTHY + 1]; /* of applications: enum app_event */
    uint64_t done_token;
    bool closed;
};

struct peer {
    int fd;
    bool ended; /* the server has ended the connection */
    size_t length;
    char text[8192]; /* received, not taken yet */
};

/* One election "billing", unknown so far, the default limits; not listening yet. */
struct rig *rig_create(void);
void rig_listen(struct rig *rig);
/* Adds the second election, "mail". */
void rig_add_election(struct rig *rig);
/* Closes the server; checks that the loop holds nothing any more and the folder is clean. */
void rig_destroy(struct rig *rig);
void rig_close_server(struct rig *rig);

/* Publishes a leader whose lease is good for that long. */
void rig_lead(struct rig *rig, size_t election, uint64_t token, int64_t good_for_ns, bool changed);
void rig_follow(struct rig *rig, size_t election, const char *holder);
void rig_state(struct rig *rig, size_t election, enum election_state state);

int64_t test_now_ms(void);
/* One turn of the loop, waiting for at most a few milliseconds. */
void rig_turn(struct rig *rig);
/* Turns until the condition holds; fails the test after 10 s. */
#define RIG_UNTIL(rig, condition)                                                                  \
    do {                                                                                           \
        int64_t give_up_ms = test_now_ms() + 10000;                                                \
        while (!(condition)) {                                                                     \
            assert_true(test_now_ms() < give_up_ms);                                               \
            rig_turn(rig);                                                                         \
        }                                                                                          \
    } while (0)
/* Turns for that long. */
void rig_run_for(struct rig *rig, int64_t ms);
size_t rig_clients(const struct rig *rig, enum socket_phase phase);

struct peer *peer_connect(struct rig *rig);
void peer_close(struct peer *peer);
void peer_send(struct peer *peer, const char *text);
void peer_send_bytes(struct peer *peer, const void *bytes, size_t length);
/* Reads what is there; notes the end. */
void peer_read(struct peer *peer);
/* Waits for one line, returns it without its end; valid until the next call. */
const char *peer_line(struct rig *rig, struct peer *peer);
/* Whether a whole line has come (reads what is there). */
bool peer_has_line(struct peer *peer);
/* Waits until the server ends the connection. */
void peer_expect_end(struct rig *rig, struct peer *peer);
/* Sends the text and expects that line. */
void peer_ask(struct rig *rig, struct peer *peer, const char *text, const char *line);
/* Expects a line that starts so. */
void peer_expect_prefix(struct rig *rig, struct peer *peer, const char *prefix);

struct leader_line {
    uint64_t token;
    int64_t valid_ms;
    int64_t deadline_ns;
};
/* Expects a leader's line. */
struct leader_line peer_expect_leader(struct rig *rig, struct peer *peer);

/* cmocka's setup and teardown around a rig that listens with one election. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

#endif
