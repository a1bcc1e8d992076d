"""A leader that is paused between its check and its write: with a guard no stale write is accepted,
without one stale writes are seen. All guards at the same time, each with an election of its own."""

import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.fences import FENCES, PostgresFence
from clients.resources import Fences, Objects, Sink
from kit.clock import wait_until
from kit.postgres_server import Postgres
from kit.sidecar import LONG, clean_env

PAUSES = 10_000 if LONG else 204
# Small servers of Python, and files that are synced, take most of the time: fewer rounds for them.
# What is paused within a transaction waits for the server to end that.
SHARES = {"postgres": 48, "rows": 24, "open": 6, "redis": 48, "files": 24, "http": 18, "objects": 18, "idempotent": 18}
ROUNDS = {name: -(-PAUSES * share // sum(SHARES.values())) for name, share in SHARES.items()}
WRITES, UNGUARDED = 50, 5  # as fence_writer.py has them
WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fence_writer.py")


class Writer:
    def __init__(self, fence, place, sidecar):
        self.sidecar, self.election = sidecar, fence
        self.process = subprocess.Popen(
            [sys.executable, WRITER, fence, str(place), sidecar.socket_path, fence],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=clean_env())

        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.split())
        self._lines.put(None)

    def tell(self, verb, number):
        self.process.stdin.write(f"{verb} {number}\n")
        self.process.stdin.flush()

    def hear(self, meanwhile=lambda: None):
        """What it says next; `meanwhile` is done until then."""
        def heard():
            meanwhile()
            try:
                return self._lines.get(timeout=0.03)
            except queue.Empty:
                return None
        return wait_until(heard, 60, f"the writer to {self.election} says something")

    def wait_paused(self, meanwhile):
        assert self.hear(meanwhile) == ["checked"]

        def is_stopped():
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "T"
        wait_until(is_stopped, 20, "the writer is paused")

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


def lead_instead(old, new):
    """Has the old leader give leadership away, if it has it; to be repeated."""
    if not new.sidecar.leads(new.election) and old.sidecar.leads(old.election):
        old.sidecar.ask("resign " + old.election, timeout=30)


def one_round(number, old, new, current):
    """(accepted late writes, whether stale data was seen without the guard)."""
    old.tell("pause", number)
    old.wait_paused(lambda: lead_instead(new, old))
    new.tell("write", number)
    _, accepted, _, lowest, highest = new.hear(lambda: lead_instead(old, new))
    assert int(accepted) > 0
    old.go_on()
    _, late, refused, _, stale = old.hear()
    assert int(stale) < int(lowest), "the token did not grow"
    assert int(late) + int(refused) == WRITES
    if current:
        assert current(True) == int(highest), "a stale write is there"
        return int(late), current(False) < int(highest)
    return int(late), True


@pytest.fixture
def places(folder, closing, redis):
    """What each fence is given to find its resource."""
    postgres = closing(Postgres(folder + "/pg", ["max_connections=90"]))
    PostgresFence.create(postgres)
    sink = closing(Sink())
    os.mkdir(folder + "/files")
    return {"postgres": postgres.port, "rows": postgres.port, "open": postgres.port, "redis": redis.port,
            "http": ",".join(map(str, closing(Fences(folder)).ports)),
            "objects": closing(Objects()).port, "files": folder + "/files",
            "idempotent": sink.port}, sink


def test_no_stale_write_is_accepted_after_a_pause(start, closing, folder, places):
    places, sink = places
    store = "local:" + folder + "/state"
    os.mkdir(folder + "/state")
    pods = [start(f"pod-{x}", "--ttl", "300ms", "--mode", "efficiency", "--valid-for", "60ms",
                  store=store, elections=tuple(FENCES), http="off", health="off") for x in "ab"]
    writers = {name: [closing(Writer(name, places[name], pod)) for pod in pods] for name in FENCES}

    def rounds(name):
        pair = writers[name]
        fence = FENCES[name](places[name])
        current = getattr(fence, "current", None)
        results = [one_round(n, pair[n % 2], pair[1 - n % 2], current) for n in range(ROUNDS[name])]
        return sum(r[0] for r in results), sum(r[1] for r in results)
    with ThreadPoolExecutor(len(FENCES)) as pool:
        running = {name: pool.submit(rounds, name) for name in FENCES}
    found = {name: future.result() for name, future in running.items()}
    assert found == {name: (0, ROUNDS[name]) for name in FENCES}
    # Each effect was taken once with a key, and twice without.
    sent = ROUNDS["idempotent"]
    assert sink.effects == {"/guarded": sent * WRITES, "/unguarded": 2 * sent * UNGUARDED}
