#include "cli/exec_lease.h"

#include "cli/client.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t real_now_ns(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Nothing that a sidecar says lasts longer; and it can be calculated with. */
static bool is_time(int64_t ms) {
    return ms >= 0 && ms <= INT64_C(1000) * 86400 * 366;
}

bool exec_lease_hear(struct exec_lease *lease, uint64_t token, int64_t valid_ms,
                     int64_t deadline_ns, int64_t ttl_ms) {
    if (!is_time(valid_ms) || !is_time(ttl_ms) || deadline_ns < 0) {
        return false;
    }
    int64_t left_ns = deadline_ns - client_now_ns();
    if (left_ns > valid_ms * NS_PER_MS) {
        return false;
    }
    int64_t grace_ns = ttl_ms * NS_PER_MS / 10;
    grace_ns = grace_ns > NS_PER_S ? grace_ns : NS_PER_S;
    lease->grace_ns = least(grace_ns, ttl_ms * NS_PER_MS / 5);
    lease->token = token;
    lease->deadline_ns = deadline_ns;
    lease->real_ns = real_now_ns() + left_ns;
    return true;
}

void exec_lease_shorten(struct exec_lease *lease, int64_t ms) {
    ms = ms > 0 ? ms : 0;
    if (is_time(ms)) {
        lease->deadline_ns = least(lease->deadline_ns, client_now_ns() + ms * NS_PER_MS);
    }
}

int64_t exec_left_ns(int64_t boot_ns, int64_t real_ns) {
    return least(boot_ns - client_now_ns(), real_ns - real_now_ns());
}

int64_t exec_lease_left_ns(const struct exec_lease *lease) {
    return lease->token == 0 ? 0 : exec_left_ns(lease->deadline_ns, lease->real_ns);
}

bool exec_clock_is_shared(int fd) {
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    char path[64];
    char theirs[64] = "";
    char ours[64] = "";
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
        return true;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/ns/time", (int)peer.pid);
    bool known = readlink(path, theirs, sizeof theirs - 1) > 0 &&
                 readlink("/proc/self/ns/time", ours, sizeof ours - 1) > 0;
    return !known || strcmp(theirs, ours) == 0;
}
