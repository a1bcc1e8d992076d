"""How late this host wakes up who sleeps, and by how much its clock was set: what no process on it
can do better than."""

import threading
import time

from kit.clock import MS, boottime_ns

NAP_S = 0.002
NOTED_NS = 5 * MS


class Latency:
    def __init__(self, noted_ns=NOTED_NS):
        self._noted_ns = noted_ns
        self._late = []  # (since, until): should have been awake, was not
        self._steps = []  # (when, by how much) the time of day was set
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        ahead = time.time_ns() - boottime_ns()
        while not self._stop.is_set():
            due = boottime_ns() + int(NAP_S * 1e9)
            time.sleep(NAP_S)
            now = boottime_ns()
            if now - due > self._noted_ns:
                self._late.append((due, now))
            stepped = time.time_ns() - boottime_ns() - ahead
            if abs(stepped) > self._noted_ns:
                self._steps.append((now, abs(stepped)))
                ahead += stepped

    def late(self, start, end, least_ns):
        """(since, until) of all that touches that time and lasted that long."""
        return [(since, until) for since, until in list(self._late)
                if until > start and since < end and until - since >= least_ns]

    def worst_ns(self, start, end):
        """The longest that it was late in that time, or the furthest that its clock was set: whoever
        measured the servers' clocks across that has to measure anew."""
        late = [until - since for since, until in self.late(start, end, 0)]
        steps = [by for when, by in list(self._steps) if start < when < end]
        return max(late + steps, default=0)

    def close(self):
        self._stop.set()
        self._thread.join(5)
