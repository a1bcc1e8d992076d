"""What is left when nothing is left, and what a crash leaves behind."""

import contextlib
import glob
import os
import resource
import signal
import socket
import time

import pytest

from kit.clock import boottime_ns, wait_until
from kit.redis_server import Redis

PASSWORD = "correct-horse-battery"


def cpu_s(pid):
    """The processor time that it has used."""
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def connect(sidecar, kind):
    if kind == "socket":
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(5)
        s.connect(sidecar.socket_path)
        return s
    port = sidecar.http_port if kind == "http" else sidecar.health_port
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def test_without_descriptors_it_leads_on_and_does_not_spin(start, redis, timely):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    led = a.wait_leader()
    # Three more than it has: the first clients take them.
    resource.prlimit(a.pid, resource.RLIMIT_NOFILE, (a.open_files() + 3,) * 2)
    with contextlib.ExitStack() as stack:
        for kind in ("socket", "http", "health") * 8:
            stack.enter_context(contextlib.closing(connect(a, kind)))
        limit = resource.prlimit(a.pid, resource.RLIMIT_NOFILE)[0]
        wait_until(lambda: a.open_files() >= limit, 10, "no descriptor is left")
        used, began, lease = cpu_s(a.pid), boottime_ns(), redis.lease()
        left, renewed = 0, 0
        while renewed < 7:  # more than two ttls
            last, left = left, redis.cli("PTTL", redis.lease_key("a"))
            assert left > 0 and redis.lease() == lease, "the lease was not renewed"
            renewed += 1 if left > last else 0
            time.sleep(0.05)
        passed_s = (boottime_ns() - began) / 10**9
        assert cpu_s(a.pid) - used < passed_s / 2, "it spins"
    check = wait_until(lambda: (lambda c: c if c.leader else None)(a.check()), 10, "it answers")
    assert check.token == led.token
    assert a.probe("/livez").status == 200
    assert a.request("/v1/leader").json()["token"] == led.token


def test_a_core_dump_holds_no_password(folder, closing, start):
    server = closing(Redis(folder + "/secret"))
    server.cli("CONFIG", "SET", "requirepass", PASSWORD)
    dumps = folder + "/dumps"
    os.mkdir(dumps)
    with open("/proc/sys/kernel/core_pattern") as f:
        pattern = f.read().strip()
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=server.url,
              env={"GAVEL_STORE_PASSWORD": PASSWORD},
              prefix=["sh", "-c", f'cd {dumps} && ulimit -c unlimited; exec "$@"', "sh"])
    a.wait_leader()
    with open(f"/proc/{a.pid}/coredump_filter") as f:
        assert int(f.read(), 16) == 0x10, "only ELF headers"
    assert PASSWORD not in a.log()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"core dumps go elsewhere: {pattern}")
    a.signal(signal.SIGSEGV)
    a.process.wait(20)
    a.process.returncode = -signal.SIGKILL  # the crash was wanted
    for path in glob.glob(dumps + "/*"):  # none where a sanitizer takes the signal
        with open(path, "rb") as f:
            assert PASSWORD.encode() not in f.read()
