#include "socket_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int setup(void **state) {
    *state = rig_create();
    return 0;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

/* A socket bound by somebody else. */
static int bind_there(const char *path, bool listening) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = address_of(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listening) {
        assert_int_equal(listen(fd, 1), 0);
    }
    return fd;
}

static void expect_refused(struct rig *rig, const char *path, const char *words) {
    struct socket_setup setup = {.loop = &rig->loop,
                                 .board = &rig->board,
                                 .counters = &rig->counters,
                                 .path = path,
                                 .mode = 0660};
    struct error error = {""};
    const struct board_observer *observers = rig->board.observers;
    assert_null(socket_create(&setup, &error));
    if (strstr(error.text, "--socket") == NULL || strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not name --socket and \"%s\"", error.text, words);
    }
    assert_ptr_equal(rig->board.observers, observers);
}

static void expect_answers(struct rig *rig) {
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\n", "follower -");
    peer_close(peer);
}

static unsigned mode_of(const char *path) {
    struct stat found;
    assert_int_equal(lstat(path, &found), 0);
    return found.st_mode & 07777;
}

static void test_mode_whatever_the_umask(void **state) {
    struct rig *rig = *state;
    static const mode_t umasks[] = {0, 022, 0777};
    static const unsigned modes[] = {0660, 0666, 0600};
    for (size_t i = 0; i < 3; i++) {
        mode_t before = umask(umasks[i]);
        rig->mode = modes[i];
        rig_listen(rig);
        assert_int_equal(umask(before), umasks[i]); /* put back */
        assert_int_equal(mode_of(rig->path), modes[i]);
        expect_answers(rig);
        rig_close_server(rig);
    }
}

static void test_descriptors_are_not_inherited(void **state) {
    struct rig *rig = *state;
    rig_listen(rig);
    struct peer *peer = peer_connect(rig);
    peer_ask(rig, peer, "check\n", "follower -");
    uv_os_fd_t fd;
    assert_int_equal(uv_fileno((uv_handle_t *)&rig->server->clients->pipe, &fd), 0);
    int descriptors[] = {fd, rig->server->place.listen_fd, rig->server->place.lock_fd};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fcntl(descriptors[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    peer_close(peer);
}

static void test_the_file_goes_with_the_server(void **state) {
    struct rig *rig = *state;
    rig_listen(rig);
    assert_int_equal(access(rig->path, F_OK), 0);
    rig_close_server(rig);
    assert_int_equal(access(rig->path, F_OK), -1);
    rig_listen(rig); /* and it can come again */
    expect_answers(rig);
}

static void test_a_successors_file_stays(void **state) {
    struct rig *rig = *state;
    rig_listen(rig);
    assert_int_equal(unlink(rig->path), 0);
    int fd = bind_there(rig->path, true);
    rig_close_server(rig);
    assert_int_equal(access(rig->path, F_OK), 0);
    close(fd);
}

static void test_a_stale_socket_is_replaced(void **state) {
    struct rig *rig = *state;
    close(bind_there(rig->path, true));
    assert_int_equal(access(rig->path, F_OK), 0);
    rig_listen(rig);
    expect_answers(rig);
}

static void test_a_listening_socket_is_not(void **state) {
    struct rig *rig = *state;
    int fd = bind_there(rig->path, true);
    expect_refused(rig, rig->path, "another program listens");
    struct sockaddr_un address = address_of(rig->path);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    close(client);
    close(fd);
}

static void test_a_busy_socket_is_not(void **state) {
    struct rig *rig = *state;
    int fd = bind_there(rig->path, true);
    struct sockaddr_un address = address_of(rig->path);
    int clients[8];
    int connected = 0; /* until its backlog is full */
    for (; connected < 8; connected++) {
        clients[connected] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(clients[connected], (struct sockaddr *)&address, sizeof address) != 0) {
            assert_int_equal(errno, EAGAIN);
            close(clients[connected]);
            break;
        }
    }
    assert_true(connected < 8);
    expect_refused(rig, rig->path, "another program listens");
    while (connected > 0) {
        close(clients[--connected]);
    }
    close(fd);
}

static void test_other_files_are_not_touched(void **state) {
    struct rig *rig = *state;
    int fd = open(rig->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "data", 4), 4);
    close(fd);
    expect_refused(rig, rig->path, "not a socket");
    struct stat found;
    assert_int_equal(lstat(rig->path, &found), 0);
    assert_int_equal(found.st_size, 4);
    unlink(rig->path);
    assert_int_equal(symlink("/tmp", rig->path), 0);
    expect_refused(rig, rig->path, "not a socket");
    unlink(rig->path);
}

static void test_two_servers_exclude_each_other(void **state) {
    struct rig *rig = *state;
    rig_listen(rig);
    expect_refused(rig, rig->path, "another gavel");
    expect_answers(rig);
    /* also where the file is gone */
    assert_int_equal(unlink(rig->path), 0);
    expect_refused(rig, rig->path, "another gavel");
    rig_close_server(rig);
    rig_listen(rig);
    expect_answers(rig);
}

static void test_lengths(void **state) {
    struct rig *rig = *state;
    char path[256];
    memset(path, 'x', sizeof path);
    size_t folder = (size_t)snprintf(path, sizeof path, "%s/", rig->folder);
    path[folder] = 'x';
    path[108] = '\0';
    expect_refused(rig, path, "107 bytes");
    expect_refused(rig, "", "107 bytes");
    path[107] = '\0'; /* the longest there is; its lock has to fit too */
    struct socket_place place;
    struct error error = {""};
    if (!socket_place_open(&place, path, 0660, &error)) {
        fail_msg("%s", error.text);
    }
    struct sockaddr_un address = address_of(path);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    close(client);
    socket_place_close(&place);
    assert_int_equal(access(path, F_OK), -1);
}

/* The folder's name alone fills it: a temporary name beside it would be too long. */
static void test_a_short_name_in_a_long_folder(void **state) {
    struct rig *rig = *state;
    char folder[120];
    memset(folder, 'd', sizeof folder);
    size_t start = (size_t)snprintf(folder, sizeof folder, "%s/", rig->folder);
    folder[start] = 'd';
    folder[105] = '\0';
    assert_int_equal(mkdir(folder, 0700), 0);
    char path[128];
    snprintf(path, sizeof path, "%s/s", folder);
    struct socket_place place;
    struct error error = {""};
    if (!socket_place_open(&place, path, 0640, &error)) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(mode_of(path), 0640);
    socket_place_close(&place);
    snprintf(path, sizeof path, "%s/s.lock", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else is in it */
}

static void test_relative_path(void **state) {
    struct rig *rig = *state;
    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(rig->folder), 0);
    struct socket_place place;
    struct error error = {""};
    assert_true(socket_place_open(&place, "gavel.sock", 0660, &error));
    assert_int_equal(access(rig->path, F_OK), 0);
    socket_place_close(&place);
    assert_int_equal(chdir(before), 0);
}

static void test_no_folder(void **state) {
    struct rig *rig = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/none/s", rig->folder);
    expect_refused(rig, path, "No such file");
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        PLACE_TEST(test_mode_whatever_the_umask),
        PLACE_TEST(test_descriptors_are_not_inherited),
        PLACE_TEST(test_the_file_goes_with_the_server),
        PLACE_TEST(test_a_successors_file_stays),
        PLACE_TEST(test_a_stale_socket_is_replaced),
        PLACE_TEST(test_a_listening_socket_is_not),
        PLACE_TEST(test_a_busy_socket_is_not),
        PLACE_TEST(test_other_files_are_not_touched),
        PLACE_TEST(test_two_servers_exclude_each_other),
        PLACE_TEST(test_lengths),
        PLACE_TEST(test_a_short_name_in_a_long_folder),
        PLACE_TEST(test_relative_path),
        PLACE_TEST(test_no_folder),
    };
    return cmocka_run_group_tests_name("socket place", tests, NULL, NULL);
}
