"""`gavel exec` in tests: the program, and what its commands write (exec_child.py)."""

import os
import signal
import subprocess

from kit.clock import wait_until
from kit.sidecar import GAVELCTL, clean_env

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exec_child.py")


class Exec:
    def __init__(self, socket_path, *command, options=(), **popen):
        self.process = subprocess.Popen(
            [GAVELCTL, "exec", "--socket", socket_path, *options, "--", *command],
            env=clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **popen)

    def supervisor(self):
        """The second of the two processes that it is."""
        return wait_until(lambda: children_of(self.process.pid), 10)[0]

    def wait(self, timeout=20):
        out, error = self.process.communicate(timeout=timeout)
        self.out, self.error = out, error
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            below = children_of(self.process.pid)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
            wait_until(lambda: not any(map(is_running, below)), 10, "its supervisor ends")
        self.process.stdout.close()
        self.process.stderr.close()


class Beats:
    """What the commands have written: (token, process, moment)."""

    def __init__(self, path):
        self.path = path

    def all(self):
        try:
            with open(self.path) as f:
                return [tuple(map(int, w)) for w in (line.split() for line in f) if len(w) == 3]
        except FileNotFoundError:
            return []

    def running(self, newest):
        """Those that wrote under a token up to this one, and still run."""
        return [p for p in {b[1] for b in self.all() if b[0] <= newest} if is_running(p)]

    def token(self):
        return max((b[0] for b in self.all()), default=0)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as f:
        return [int(word) for word in f.read().split()]
