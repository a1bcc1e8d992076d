"""Takeover after kill -9 on stores that are polled: a lock file, PostgreSQL."""

import random
import time

from bench.figures import Skipped, at_most, number, p99, spread
from bench.stand import Watch, settled
from kit.clock import boottime_ns
from kit.postgres_server import Postgres, postgres_bin

# What each store does without being told: the lock file's watch looks ten times a second, the
# advisory lock is tried four times a second at least.
LOCAL_POLL_MS = 100
POSTGRES_POLL_MS = 250


def rounds_of(stand, store, count):
    """From the kill until the other one's reader hears leader, in ms."""
    options = ("--mode", "efficiency", "--ttl", "2s")
    both = [stand.sidecar(*options, store=store) for _ in range(2)]
    took, chance = [], random.Random(1)
    for _ in range(count):
        leads = settled(both)
        watch = Watch(both[1 - leads])
        time.sleep(chance.random() * POSTGRES_POLL_MS / 1000)  # at no certain moment of its poll
        begun = boottime_ns()
        both[leads].kill9()
        took.append((watch.wait_leader() - begun) / 1e6)
        watch.close()
        both[leads].wait()
        both[leads].start()
    return took


def row(name, took, poll_ms):
    limit = poll_ms + 20
    return at_most(f"takeover after kill -9 on {name}, efficiency, p99 of {len(took)}",
                   spread(took, "ms"), f"its poll, {number(poll_ms)} ms", p99(took), limit,
                   "ms")


def local(stand):
    took = rounds_of(stand, f"local:{stand.folder}/locks", stand.rounds(100, 10))
    yield row("a lock file", took, LOCAL_POLL_MS)


def postgres(stand):
    try:
        postgres_bin()
    except AssertionError:
        raise Skipped("no PostgreSQL here (package postgresql)") from None
    server = Postgres(stand.folder + "/pg")
    stand.stack.callback(server.close)
    yield row("PostgreSQL", rounds_of(stand, server.url, stand.rounds(100, 8)), POSTGRES_POLL_MS)


GROUPS = [("takeover on a lock file", local), ("takeover on PostgreSQL", postgres)]
