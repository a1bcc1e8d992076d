"""Asks sidecars every few milliseconds about each of their elections, from one thread: lighter than
the Sampler, for many elections at once. Each election has a judge of its own."""

import collections
import socket
import threading
import time

from kit.clock import boottime_ns, wait_until
from kit.history import Answer, History

PAUSE_S = 0.005
ANSWER_S = 0.1


class _Line:
    """One connection to a sidecar's socket; asked anew when it broke."""

    def __init__(self, sidecar):
        self.sidecar = sidecar
        self.socket = self.file = None

    def ask(self, question):
        try:
            if self.socket is None:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.settimeout(ANSWER_S)
                self.socket.connect(self.sidecar.socket_path)
                self.file = self.socket.makefile("rb")
            self.socket.sendall(question)
            line = self.file.readline()
            if line.endswith(b"\n"):
                return line.decode().split()
        except OSError:
            pass
        self.close()
        return None

    def close(self):
        if self.file is not None:
            self.file.close()
        if self.socket is not None:
            self.socket.close()
        self.socket = self.file = None


class Observer:
    def __init__(self, sidecars, elections=None):
        self.elections = list(elections or sidecars[0].elections)
        self.histories = {e: History() for e in self.elections}
        self._lines = [_Line(s) for s in sidecars]
        self._asked = collections.Counter()
        self._led = collections.Counter()
        self._heard = collections.defaultdict(set)
        self.since = boottime_ns()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            for line in self._lines:
                for election in self.elections:
                    self._note(line, election)
            time.sleep(PAUSE_S)

    def _note(self, line, election):
        send = boottime_ns()
        words = line.ask(f"check {election}\n".encode())
        receive = boottime_ns()
        if words is None or words[0] == "error":
            return
        who = (line.sidecar.identity, election)
        leads = words[0] == "leader"
        self._asked[who] += 1
        self._led[who] += leads
        numbers = (int(words[1]), int(words[3])) if leads else ()
        self._heard[election].update(numbers[:1])
        self.histories[election].add(Answer(who[0], send, receive, leads, *numbers))

    def restart(self):
        """Counts from now on."""
        self.since = boottime_ns()
        self._asked.clear()
        self._led.clear()
        self._heard.clear()

    def share(self, sidecar, election):
        """The share of its answers since then that said leader."""
        who = (sidecar.identity, election)
        wait_until(lambda: self._asked[who] > 20, 10, f"{who} has been asked")
        return self._led[who] / self._asked[who]

    def tokens(self, election):
        """Those heard since then."""
        return set(self._heard[election])

    def check(self):
        """Never two leaders, tokens rise."""
        assert self._thread.is_alive(), "the observer has ended"
        for election, history in self.histories.items():
            history.check()
            tokens = list(history.grants)  # in the order in which they were first heard
            assert tokens == sorted(tokens), (election, tokens)

    def close(self):
        self._stop.set()
        self._thread.join(10)
        for line in self._lines:
            line.close()
        for history in self.histories.values():
            history.check()
