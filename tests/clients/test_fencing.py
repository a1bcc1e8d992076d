"""A leader that is paused between its check and its write: with a guard no stale write is accepted,
without one stale writes are seen. All guards at the same time, each with an election of its own."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from clients.fences import FENCES, PostgresFence
from clients.resources import Fences, Objects, Sink
from kit.clock import wait_until
from kit.postgres_server import Postgres
from kit.sidecar import LONG, clean_env

PAUSES = 10_000 if LONG else 204
ROUNDS = -(-PAUSES // len(FENCES))
WRITES, UNGUARDED = 50, 5  # as fence_writer.py has them
WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fence_writer.py")


class Writer:
    def __init__(self, fence, place, sidecar):
        self.sidecar, self.election = sidecar, fence
        self.process = subprocess.Popen(
            [sys.executable, WRITER, fence, str(place), sidecar.socket_path, fence],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=clean_env())

    def tell(self, verb, number):
        self.process.stdin.write(f"{verb} {number}\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, f"the writer to {self.election} ended"
        return line.split()

    def wait_paused(self):
        assert self.hear() == ["checked"]

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
    """The old leader gives leadership away until the new one has it."""
    def leads():
        if old.sidecar.leads(old.election):
            old.sidecar.ask("resign " + old.election, timeout=30)
        return new.sidecar.leads(new.election)
    wait_until(leads, 60, f"another leads for {old.election}")


def one_round(number, old, new, current):
    """(accepted late writes, whether stale data was seen without the guard)."""
    lead_instead(new, old)
    old.tell("pause", number)
    old.wait_paused()
    lead_instead(old, new)
    new.tell("write", number)
    _, accepted, refused, lowest, highest = new.hear()
    assert (accepted, refused) == (str(WRITES), "0")
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
    postgres = closing(Postgres(folder + "/pg", ["max_connections=130"]))
    PostgresFence.create(postgres)
    sink = closing(Sink())
    os.mkdir(folder + "/files")
    return {"postgres": postgres.port, "redis": redis.port,
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
    found, failures = {}, []

    def rounds(name):
        pair = writers[name]
        fence = FENCES[name](places[name])
        current = getattr(fence, "current", None)
        try:
            results = [one_round(n, pair[n % 2], pair[1 - n % 2], current) for n in range(ROUNDS)]
            found[name] = sum(r[0] for r in results), sum(r[1] for r in results)
        except AssertionError as e:
            failures.append(AssertionError(f"{name}: {e}"))
    threads = [threading.Thread(target=rounds, args=(name,)) for name in FENCES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert found == {name: (0, ROUNDS) for name in FENCES}
    # Each effect was taken once with a key, and twice without.
    assert sink.effects == {"/guarded": ROUNDS * WRITES, "/unguarded": 2 * ROUNDS * UNGUARDED}
