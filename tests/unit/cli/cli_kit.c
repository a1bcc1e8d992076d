#include "cli_kit.h"

#include "cli/cli.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int fake_setup(void **state) {
    static struct fake_sidecar fake;
    memset(&fake, 0, sizeof fake);
    (void)strcpy(fake.folder, "/tmp/gavel-test-XXXXXX");
    *state = &fake;
    if (mkdtemp(fake.folder) == NULL) {
        return 1;
    }
    (void)snprintf(fake.socket, sizeof fake.socket, "%s/gavel.sock", fake.folder);
    return 0;
}

static void stop(struct fake_sidecar *fake) {
    if (fake->process > 0) {
        (void)kill(fake->process, SIGKILL);
        (void)waitpid(fake->process, NULL, 0);
        fake->process = 0;
    }
}

int fake_teardown(void **state) {
    struct fake_sidecar *fake = *state;
    stop(fake);
    (void)unlink(fake->socket);
    return rmdir(fake->folder);
}

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)strcpy(address.sun_path, path);
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* 0: the request was as expected. */
static int serve(int connection, const struct fake_reply *reply) {
    char line[512];
    size_t length = 0;
    while (length < sizeof line - 1 && read(connection, line + length, 1) == 1 &&
           line[length] != '\n') {
        length++;
    }
    line[length] = '\0';
    (void)poll(NULL, 0, reply->delay_ms);
    size_t size = reply->size > 0 ? reply->size : strlen(reply->text);
    (void)send(connection, reply->text, size, MSG_NOSIGNAL);
    return strcmp(line, reply->request) != 0;
}

/* Waits for the peer's end of a connection that stays. */
static void wait_for_end(int connection) {
    char byte;
    while (read(connection, &byte, 1) > 0) {
    }
}

static int serve_all(int fd, const struct fake_reply *replies, size_t count) {
    int wrong = 0;
    int staying = -1;
    for (size_t i = 0; i < count; i++) {
        int connection = accept(fd, NULL, NULL);
        if (connection < 0) {
            return 2;
        }
        wrong |= serve(connection, &replies[i]);
        if (replies[i].stays) {
            staying = connection;
        } else {
            (void)close(connection);
        }
    }
    if (staying >= 0) {
        wait_for_end(staying);
    }
    return wrong;
}

void fake_start(struct fake_sidecar *fake, const struct fake_reply *replies, size_t count) {
    int fd = listen_at(fake->socket);
    fake->process = fork();
    assert_true(fake->process >= 0);
    if (fake->process == 0) {
        _exit(serve_all(fd, replies, count));
    }
    (void)close(fd);
}

void fake_join(struct fake_sidecar *fake) {
    int status;
    assert_int_equal(waitpid(fake->process, &status, 0), fake->process);
    fake->process = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void read_all(int fd, char *text, size_t size) {
    ssize_t got = pread(fd, text, size - 1, 0);
    assert_true(got >= 0);
    text[got] = '\0';
    (void)close(fd);
}

int fake_run_with(struct fake_sidecar *fake, char *const *arguments, char *const *environment) {
    char name[] = "gavelctl";
    char *all[16] = {name};
    int count = 1;
    for (; arguments[count - 1] != NULL; count++) {
        all[count] = arguments[count - 1];
    }
    int out = open(fake->folder, O_TMPFILE | O_RDWR, 0600);
    int err = open(fake->folder, O_TMPFILE | O_RDWR, 0600);
    assert_true(out >= 0 && err >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)clearenv();
        for (; *environment != NULL; environment++) {
            (void)putenv(*environment);
        }
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(err, STDERR_FILENO);
        int status = cli_main("gavelctl", "", NULL, count, all);
        (void)fflush(NULL);
        _exit(status);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    read_all(out, fake->out, sizeof fake->out);
    read_all(err, fake->err, sizeof fake->err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int fake_run(struct fake_sidecar *fake, char *const *arguments) {
    char option[] = "--socket";
    char *all[16];
    size_t count = 0;
    for (; arguments[count] != NULL; count++) {
        all[count] = arguments[count];
    }
    all[count] = option;
    all[count + 1] = fake->socket;
    all[count + 2] = NULL;
    return fake_run_with(fake, all, (char *[]){NULL});
}
