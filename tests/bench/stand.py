"""What the rows are measured with: programs, sidecars and servers that end with the row."""

import contextlib
import os
import select
import socket
import statistics
import subprocess
import tempfile
import time

from bench.figures import Skipped
from kit.clock import S, boottime_ns, wait_until
from kit.redis_server import Redis
from kit.sidecar import BIN, Sidecar, clean_env

PROGRAMS = os.path.join(BIN, "bench")
OFF = {"http": "off", "health": "off"}


def program(name):
    return os.path.join(PROGRAMS, "bench_" + name)


class Stand:
    """Everything of one group of rows, in a folder of its own. `quick`: few rounds."""

    def __init__(self, quick):
        self.quick = quick
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="gv-bench-"))
        os.chmod(self.folder, 0o755)
        self._redis = None
        self.sidecars = 0
        self._peers = []  # process ids

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stack.close()

    def rounds(self, full, quick):
        return quick if self.quick else full

    @property
    def redis(self):
        """Started when it is asked for first."""
        if self._redis is None:
            self._redis = Redis(self.folder + "/redis")
            self.stack.callback(self._redis.close)
        return self._redis

    def sidecar(self, *options, store=None, **kwargs):
        self.sidecars += 1
        made = Sidecar(self.folder, store or self.redis.url, f"s{self.sidecars}",
                       options=options, **{**OFF, **kwargs})
        self.stack.callback(made.close)
        return made

    def server(self, name, *arguments):
        """One of the peers, when it answers: the first line that it says."""
        process = subprocess.Popen([program(name), *arguments], stdout=subprocess.PIPE, text=True)
        self.stack.callback(end, process)
        self._peers.append(process.pid)
        line = process.stdout.readline().strip()
        assert line, f"{name} ended with {process.wait()}"
        return line

    @contextlib.contextmanager
    def placed(self, *sidecars, apart=False):
        """Whoever answers is on one processor; who asks is there too, or (apart) on another one.
        Left to itself the kernel puts some together and some not, which is five times as slow."""
        everywhere = os.sched_getaffinity(0)
        here, *there = sorted(everywhere)
        pids = [*self._peers, *(s.pid for s in sidecars)]
        place(pids, {here})
        os.sched_setaffinity(0, {there[0] if apart and there else here})
        try:
            yield
        finally:
            os.sched_setaffinity(0, everywhere)
            place(pids, everywhere)


def place(pids, processors):
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), processors)


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


def lines_of(name, *arguments, timeout=300):
    """The lines that one of our programs prints until it ends."""
    done = subprocess.run([program(name), *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=timeout)
    return done.stdout.splitlines()


def need(command, package):
    from shutil import which
    if which(command) is None:
        raise Skipped(f"no {command} here (package {package})")


class Watch:
    """A connection to a sidecar's socket that hears each change, and when."""

    def __init__(self, sidecar):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(sidecar.socket_path)
        self.socket.sendall(b"watch\n")
        self.buffer = b""

    def line(self):
        """The next line, or nothing when the sidecar has ended."""
        while b"\n" not in self.buffer:
            got = self.socket.recv(4096)
            if not got:
                return b""
            self.buffer += got
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def wait_leader(self, timeout=30):
        """BOOTTIME when the line arrived that says leader."""
        self.socket.settimeout(timeout)
        while True:
            line = self.line()
            now = boottime_ns()
            if line.startswith(b"leader "):
                return now
            assert line, "the sidecar has ended"

    def close(self):
        self.socket.close()


def first_leader(watches, timeout=30):
    """(which, BOOTTIME) of the first that hears `leader`."""
    until = time.monotonic() + timeout
    by_socket = {w.socket: i for i, w in enumerate(watches)}
    poll = select.epoll()
    names = {s.fileno(): i for s, i in by_socket.items()}
    for fd in names:
        poll.register(fd, select.EPOLLIN)
    with contextlib.closing(poll):
        while time.monotonic() < until:
            for fd, _ in poll.poll(1):
                now = boottime_ns()
                got = watches[names[fd]].socket.recv(4096)
                if b"leader " in got:
                    return names[fd], now
                if not got:
                    poll.unregister(fd)
    raise AssertionError("no leader")


def real_minus_boot_ns():
    """What has to be added to a BOOTTIME for CLOCK_REALTIME."""
    pairs = [(boottime_ns(), time.time_ns(), boottime_ns()) for _ in range(9)]
    return int(statistics.median(real - (a + b) // 2 for a, real, b in pairs))


def late_ms(now_ns, expiry):
    """How long after the key's expiry, by the server's own word, that moment of BOOTTIME was."""
    return (now_ns + real_minus_boot_ns()) / 1e6 - expiry


def expiry_ms(redis, held, election="a"):
    """When the key of the lease `held` expires, in ms of CLOCK_REALTIME; None: it has, or is
    another's now."""
    ends = redis.cli("PEXPIRETIME", redis.lease_key(election))
    return ends if ends > 0 and redis.lease(election) == held else None


class RoundTrips:
    """Asks a Redis the least that can be asked, on one connection."""

    def __init__(self, redis):
        self.socket = socket.create_connection(("127.0.0.1", redis.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def took_ms(self, count=1):
        begun = boottime_ns()
        for _ in range(count):
            self.socket.sendall(b"PING\r\n")
            self.socket.recv(64)
        return (boottime_ns() - begun) / 1e6

    def close(self):
        self.socket.close()


def wait_follower(sidecar, timeout=20):
    wait_until(lambda: sidecar.state() == "follower", timeout, f"{sidecar.identity} follows",
               poll=0.002)


def settled(sidecars, up_s=0, timeout=60):
    """Who of them leads, when all others follow and each has been up for so long. On a busy machine
    leadership may have moved on since it was heard of."""
    def look():
        states = [s.state() for s in sidecars]
        now = boottime_ns()
        calm = sorted(states) == sorted(["leader"] + ["follower"] * (len(states) - 1))
        old = all(now - s.started_ns > up_s * S for s in sidecars)
        return [states.index("leader")] if calm and old else None
    return wait_until(look, timeout, "one leads, the others follow", poll=0.002)[0]


def cpu_ns(pid):
    """Processor time of all its threads, as the scheduler counts it."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


__all__ = ["Stand", "Watch", "RoundTrips", "clean_env", "cpu_ns", "end", "first_leader",
           "expiry_ms", "late_ms", "lines_of", "need", "program", "settled",
           "wait_follower"]
