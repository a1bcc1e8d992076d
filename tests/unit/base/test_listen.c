#include "base/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_listen_on_both_loopbacks(void **state) {
    (void)state;
    struct listen_set set;
    struct error error = {.text = ""};
    assert_true(listen_open(&set, "--test", "localhost", 0, &error));
    assert_true(set.loopback);
    assert_string_equal(set.sockets[0].address, "127.0.0.1");
    assert_true(set.sockets[0].port != 0);
    if (set.count == 2) {
        assert_string_equal(set.sockets[1].address, "::1");
        assert_int_equal(set.sockets[1].port, set.sockets[0].port);
    }
    listen_close(&set);
    assert_true(listen_open(&set, "--test", "", 0, &error));
    assert_false(set.loopback);
    assert_string_equal(set.sockets[0].address, "0.0.0.0");
    listen_close(&set);
    assert_true(listen_open(&set, "--test", "127.8.9.10", 0, &error));
    assert_true(set.loopback);
    listen_close(&set);
}

static void test_listen_errors(void **state) {
    (void)state;
    struct listen_set first, second;
    struct error error = {.text = ""};
    assert_true(listen_open(&first, "--test", "127.0.0.1", 0, &error));
    uint16_t port = first.sockets[0].port;
    assert_false(listen_open(&second, "--test", "localhost", port, &error));
    char expected[64];
    snprintf(expected, sizeof expected, "--test: cannot listen on 127.0.0.1:%u: ", port);
    assert_non_null(strstr(error.text, expected));
    assert_non_null(strstr(error.text, strerror(EADDRINUSE)));
    listen_close(&first);

    assert_false(listen_open(&second, "--test", "192.0.2.77", 4040, &error));
    assert_non_null(strstr(error.text, "--test: cannot listen on 192.0.2.77:4040: "));
    assert_non_null(strstr(error.text, strerror(EADDRNOTAVAIL)));
    assert_false(listen_open(&second, "--test", "example.invalid", 4040, &error));
    assert_non_null(strstr(error.text, "--test: \"example.invalid\" is not an address"));
}

/* All or nothing: whoever asks [::1] first must not reach a stranger. */
static void test_half_taken_port(void **state) {
    (void)state;
    struct listen_set first, second;
    struct error error = {.text = ""};
    if (!listen_open(&first, "--test", "::1", 0, &error)) {
        print_message("no IPv6 on this host\n");
        skip();
    }
    uint16_t port = first.sockets[0].port;
    assert_false(listen_open(&second, "--test", "localhost", port, &error));
    char expected[64];
    snprintf(expected, sizeof expected, "--test: cannot listen on [::1]:%u: ", port);
    assert_non_null(strstr(error.text, expected));
    /* and the half that was free is free again */
    assert_true(listen_open(&second, "--test", "127.0.0.1", port, &error));
    listen_close(&second);
    listen_close(&first);
}

/* In a network of its own, where IPv6 is switched off. 0: as it should be, 2: cannot be tried. */
static int listen_without_ipv6(void) {
    int fd = -1;
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) != 0 || (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ||
        ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        return 2;
    }
    int off = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY);
    if (off >= 0 && write(off, "1", 1) != 1) {
        return 2;
    }
    struct listen_set set;
    struct error error = {.text = ""};
    bool opened = listen_open(&set, "--test", "localhost", 0, &error);
    return opened && set.count == 1 && set.loopback ? 0 : 1;
}

static void test_listen_without_ipv6(void **state) {
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(listen_without_ipv6());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
        print_message("no right to make a network without IPv6\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_on_both_loopbacks),
        cmocka_unit_test(test_listen_errors),
        cmocka_unit_test(test_half_taken_port),
        cmocka_unit_test(test_listen_without_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
