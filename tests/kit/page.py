"""One reader of a shared page: the C reader in a process of its own, as an application has it."""

import dataclasses
import os
import subprocess

from kit.clock import wait_until
from kit.sidecar import BIN

READER = os.path.join(BIN, "tests", "page_reader")
GOOD, NO_FILE, NOT_A_PAGE, OTHER_VERSION, OTHER_BOOT, OTHER_CLOCK, NO_PROC, BUSY = range(8)


@dataclasses.dataclass
class Reading:
    send: int
    receive: int
    leader: bool
    state: str
    token: int = 0
    valid_ns: int = 0
    deadline: int = 0
    problem: int = GOOD
    holder: str = "-"


def parse(line):
    words = line.split()
    send, receive, state = int(words[0]), int(words[1]), words[2]
    if state == "leader":
        return Reading(send, receive, True, state, *map(int, words[3:6]))
    return Reading(send, receive, False, state, problem=int(words[3]), holder=words[4])


class PageReader:
    """prefix: what the reader is run by, such as strace; user: another user's id (as root); env:
    what it gets beside ours."""

    def __init__(self, path, prefix=(), user=None, env=None):
        extra = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        # A leak cannot be looked for while another traces.
        env = {**os.environ, **({"ASAN_OPTIONS": "detect_leaks=0"} if prefix else {}), **(env or {})}
        self.process = subprocess.Popen([*prefix, READER, path], stdin=subprocess.PIPE, env=env,
                                        stdout=subprocess.PIPE, text=True, bufsize=1, **extra)

    def _ask(self, line):
        self.process.stdin.write(line + "\n")

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, f"the reader ended with {self.process.wait()}"
        return line

    def check(self):
        self._ask("check")
        return parse(self._answer())

    def spin(self, count):
        """How many of so many checks said leader."""
        self._ask(f"spin {count}")
        return int(self._answer().split()[1])

    def follow(self, until_ns):
        """Has it check without pause, and returns when it does. followed() gives the readings that
        brought a change, and those before them."""
        self._ask(f"follow {until_ns}")
        self.first = parse(self._answer())

    def followed(self):
        readings = [self.first]
        while True:
            line = self._answer()
            if line.startswith("followed"):
                return readings
            readings.append(parse(line))

    def wait_leader(self, timeout=10.0):
        def ask():
            reading = self.check()
            return reading if reading.leader else None
        return wait_until(ask, timeout, "the page says leader")

    def stop(self):
        """Its end, and its exit status."""
        self.process.stdin.close()
        return self.process.wait(20)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
