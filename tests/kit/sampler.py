"""Asks all sidecars every 2 ms, or without pause, from a process of its own, and judges what they answer."""

import dataclasses
import json
import os
import subprocess
import sys
import threading

from kit.clock import boottime_ns, wait_until

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclasses.dataclass(frozen=True)
class Change:
    """The first answer of a target that differs from the one before."""
    replica: str
    way: str
    state: str
    token: int
    leader: bool
    send: int
    receive: int
    deadline: int


class Sampler:
    def __init__(self, sidecars, election="", ways=("http", "socket"), every_ms=2):
        targets = []
        for sidecar in sidecars:
            if "http" in ways:
                targets.append({"replica": sidecar.identity, "way": "http", "election": election,
                                "address": ["127.0.0.1", sidecar.http_port]})
            if "socket" in ways:
                targets.append({"replica": sidecar.identity, "way": "socket",
                                "election": election, "address": sidecar.socket_path})
        self.changes = []
        self.stalls = []
        self.violations = []
        self.summary = None
        self._obeyed = []
        self._started = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kit.sampler_main", json.dumps(targets),
             str(every_ms)], cwd=TESTS,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self._started.wait(10), "the sampler did not start"

    def _read(self):
        for line in self.process.stdout:
            record = json.loads(line)
            what = record.pop("what")
            if what == "change":
                self.changes.append(Change(**record))
            elif what == "stall":
                self.stalls.append((record["start"], record["end"]))
            elif what == "violation":
                self.violations.append(record["text"])
            elif what == "obeyed":
                self._obeyed.append(record["line"])
            elif what == "summary":
                self.summary = record
            else:
                self._started.set()

    def readers(self, order, sidecar):
        """"stop": the application beside that sidecar has ended, it is asked only to see what it
        says. "resume": there is one again."""
        count = len(self._obeyed)
        self.process.stdin.write(f"{order} {sidecar.identity}\n")
        wait_until(lambda: len(self._obeyed) > count, 10, f"the sampler obeys {order}")

    def stop(self, allowed=()):
        """Ends the asking and returns the summary; fails on any violation but those kinds that the
        mode does not exclude."""
        if self.process.poll() is None:
            self.process.stdin.close()
        self._thread.join(20)
        assert self.process.wait(20) == 0, "the sampler failed, see its traceback above"
        self.violations = [v for v in self.violations if not v.startswith(tuple(allowed))]
        assert not self.violations, "\n".join(self.violations[:10])
        assert self.summary and self.summary["leaders"] > 0, f"nobody led: {self.summary}"
        return self.summary

    def share(self, sidecar):
        """How much of the answers of that one said leader; after stop()."""
        answers, leaders = self.summary["replicas"][sidecar.identity]
        return leaders / answers

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self._thread.join(20)
            # The test ended before it looked at them.
            assert not self.violations, "\n".join(self.violations[:10])

    def stalled_ns(self, start, end):
        """For how long the asking itself stood still in that time: the host had no time for us."""
        return sum(max(0, min(e, end) - max(s, start)) for s, e in list(self.stalls))

    def leaders_since(self, moment, besides=()):
        """First answers `leader` to questions asked after that moment."""
        return [c for c in list(self.changes)
                if c.leader and c.receive > moment and c.replica not in besides]

    def wait_for_leader(self, moment=None, besides=(), timeout=60.0):
        """The first `leader` answer of anybody else received after the moment."""
        moment = boottime_ns() if moment is None else moment
        assert self.process.poll() is None, "the sampler has ended"
        return wait_until(lambda: self.leaders_since(moment, besides), timeout,
                          f"another leader than {besides}", poll=0.001)[0]
