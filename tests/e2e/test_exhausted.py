"""What is left when nothing is left, and what a crash leaves behind."""

import contextlib
import fcntl
import glob
import os
import resource
import signal
import socket
import subprocess
import time

import pytest

from kit.clock import boottime_ns, wait_until
from kit.netns import can_mount_privately
from kit.redis_server import Redis
from kit.sidecar import GAVEL, clean_env, run

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


def filter_of(pid):
    with open(f"/proc/{pid}/coredump_filter", encoding="ascii") as f:
        return int(f.read(), 16)


def crash(process, dumps):
    """Its core dump; skipped where dumps are not written into the working folder."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        pattern = f.read().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"core dumps go elsewhere: {pattern}")
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("core dumps are limited here")
    process.send_signal(signal.SIGSEGV)
    process.wait(20)
    process.returncode = -signal.SIGKILL  # the crash was wanted
    paths = glob.glob(dumps + "/*")
    assert len(paths) == 1, "no core dump, or another file"
    with open(paths[0], "rb") as f:
        dump = f.read()
    assert dump.startswith(b"\x7fELF")
    return dump


@pytest.fixture
def dumps(folder):
    path = folder + "/dumps"
    os.mkdir(path)
    return path


def dumping(dumps):
    return ["sh", "-c", f'cd {dumps} && ulimit -c unlimited; exec "$@"', "sh"]


def test_a_core_dump_holds_no_password(folder, dumps, closing, start):
    server = closing(Redis(folder + "/secret"))
    server.cli("CONFIG", "SET", "requirepass", PASSWORD)
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency", store=server.url,
              env={"GAVEL_STORE_PASSWORD": PASSWORD}, prefix=dumping(dumps))
    a.wait_leader()
    assert filter_of(a.pid) == 0x10, "only ELF headers"
    assert not a.event("no-core-dumps")
    assert PASSWORD not in a.log()
    assert PASSWORD.encode() not in crash(a.process, dumps)


def test_a_core_dump_of_config_holds_no_password(dumps):
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.write(write, bytes(4096))  # full: it waits when it prints, and has read everything by then
    process = subprocess.Popen(
        [*dumping(dumps), GAVEL, "config", "--store", "redis://127.0.0.1:1", "--election", "a"],
        env=clean_env({"GAVEL_STORE_PASSWORD": PASSWORD}), stdout=write)
    try:
        def waits():
            with open(f"/proc/{process.pid}/wchan", encoding="ascii") as f:
                return "pipe" in f.read() or process.poll() is not None
        wait_until(waits, 20, "it prints")
        assert filter_of(process.pid) == 0x10, "only ELF headers"
        assert PASSWORD.encode() not in crash(process, dumps)
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)


def test_what_exec_runs_keeps_its_own_dumps(start):
    a = start("pod-a", "--ttl", "1s", "--mode", "efficiency")
    a.wait_leader()
    done = run(GAVEL, "exec", "--once", "--socket", a.socket_path, "--", "cat",
               "/proc/self/coredump_filter")
    assert int(done.stdout, 16) == filter_of(os.getpid()) != 0x10


@pytest.mark.skipif(not can_mount_privately(), reason="needs root, and / as a mount of its own")
def test_without_a_filter_nothing_is_dumped_and_it_is_said(start, dumps):
    no_proc = ["unshare", "-m", "sh", "-c",
               f'cd {dumps}; ulimit -c unlimited; mount -t tmpfs none /proc && exec "$@"', "sh"]
    done = subprocess.run([*no_proc, GAVEL, "config", "--store", "redis://127.0.0.1:1",
                           "--election", "a"], env=clean_env(), capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 0
    assert "warning: coredump_filter: No such file or directory" in done.stderr
    a = start("pod-a", "--page-dir", "off", prefix=no_proc)
    assert a.event("no-core-dumps", filter="No such file or directory")
    assert filter_of(a.pid) != 0x10
    a.signal(signal.SIGSEGV)
    a.process.wait(20)
    a.process.returncode = -signal.SIGKILL  # the crash was wanted
    assert os.listdir(dumps) == []
