"""How long it takes from exec to the first answer, and to leadership."""

import ctypes
import os
import select
import socket
import subprocess

from bench.figures import at_most, number, p99, spread
from bench.stand import RoundTrips, clean_env, end
from e2e.footprint import libraries_of
from kit.clock import boottime_ns
from kit.sidecar import GAVEL

EMPTY = ("#include <unistd.h>\n"
         "int main(void) { return write(1, \"\", 1) == 1 ? pause() : 1; }\n")


def empty_program(folder):
    source, binary = os.path.join(folder, "empty.c"), os.path.join(folder, "empty")
    with open(source, "w") as f:
        f.write(EMPTY)
    subprocess.run(["cc", "-O2", "-o", binary, source, "-Wl,--no-as-needed",
                    *libraries_of(GAVEL)], check=True)
    return binary


def empty_ms(binary):
    """Until it is in main()."""
    begun = boottime_ns()
    with subprocess.Popen([binary], stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        took = (boottime_ns() - begun) / 1e6
        process.kill()
    return took


class Arrivals:
    """Names that are moved into a folder, waited for without asking: whoever spins takes time from
    the program that it waits for, where two processors are one core."""

    MOVED_TO = 0x80

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init()
        assert self.fd >= 0
        assert self.libc.inotify_add_watch(self.fd, folder.encode(), self.MOVED_TO) >= 0

    def wait(self):
        assert select.select([self.fd], [], [], 20)[0], "nothing came"
        os.read(self.fd, 4096)

    def close(self):
        os.close(self.fd)


class Starter:
    """Starts gavel on its Unix socket, without the kit's waiting for the log."""

    def __init__(self, folder, store):
        self.path = folder + "/started/start.sock"  # alone there
        os.mkdir(os.path.dirname(self.path))
        self.arrivals = Arrivals(os.path.dirname(self.path))
        self.command = [GAVEL, "run", "--store", store, "--identity", "start", "--socket",
                        self.path, "--http", "off", "--health", "off", "--election", "a",
                        "--drain", "none"]

    def times(self):
        """(ms to the first answer, ms to the first that says leader); then it ends, cleanly."""
        begun = boottime_ns()
        process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, env=clean_env(),
                                   stderr=subprocess.DEVNULL)
        try:
            self.arrivals.wait()  # it is bound elsewhere, and moved here when it listens
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(20)
                connection.connect(self.path)
                connection.sendall(b"watch\n")
                line = connection.recv(4096)
                first = led = boottime_ns()
                while b"leader " not in line:
                    line = connection.recv(4096)
                    led = boottime_ns()
                    assert line, "it has ended"
            process.terminate()
            assert process.wait(20) == 0
        finally:
            end(process)
        return (first - begun) / 1e6, (led - begun) / 1e6

    def close(self):
        self.arrivals.close()


def start(stand):
    binary = empty_program(stand.folder)
    starter, trips = Starter(stand.folder, stand.redis.url), RoundTrips(stand.redis)
    starter.times()  # leaves the clean record that the others find
    empties, answers, leads, pings = [], [], [], []
    for _ in range(stand.rounds(100, 10)):
        empties.append(empty_ms(binary))
        pings.append(trips.took_ms())
        first, led = starter.times()
        answers.append(first)
        leads.append(led)
    trips.close()
    starter.close()
    empty = "an empty program with the same libraries"
    yield at_most("exec to the first answer", spread(answers, "ms"),
                  f"{spread(empties, 'ms')}, {empty}", middle_of(answers, empties), 5, "ms more")
    yield at_most("exec to leader on a clean record in Redis", spread(leads, "ms"),
                  f"{spread(pings, 'ms')}, a round trip, beyond the empty program",
                  middle_of(leads, [e + p for e, p in zip(empties, pings)]), 5, "ms more")
    yield at_most("exec to leader, p99", f"{number(p99(leads))} ms",
                  f"{number(p99(empties))} ms, {empty}", p99(leads) - p99(empties), 5, "ms more")


def middle_of(ours, theirs):
    """The median of what each was longer than the one measured just before it."""
    more = sorted(a - b for a, b in zip(ours, theirs))
    return more[len(more) // 2]


GROUPS = [("start", start)]
