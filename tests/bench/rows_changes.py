"""How fast leadership changes hands on Redis: a handover, an application's crash, a kill -9."""

import subprocess

from bench.figures import at_most, median, number, p99, spread
from bench.stand import (RoundTrips, Watch, end, expiry_ms, first_leader, late_ms, program, settled,
                         wait_follower)
from kit.clock import boottime_ns

TRIPS = 3
TTL_S = 0.3


class Listener:
    """A process that watches a sidecar, as its attached application unless only=True."""

    def __init__(self, sidecar, only=False):
        self.process = subprocess.Popen(
            [program("attached"), sidecar.socket_path, *(["watch"] if only else [])],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "ok\n", line

    def heard_ns(self):
        """BOOTTIME of the next change to leader."""
        line = self.process.stdout.readline()
        assert line.startswith("leader "), line
        return int(line.split()[1])

    def crash(self):
        self.process.kill()

    def close(self):
        end(self.process)


def handover(ends, application):
    """From SIGTERM until the other one's application hears leader, in ms."""
    begun = boottime_ns()
    ends.terminate()
    took = (application.heard_ns() - begun) / 1e6
    assert ends.wait() == 0
    return took


def crash(application, takes):
    """From the kill -9 of the leader's application until the other one's reader hears leader. Only
    the application may have been promised anything: others' promises are waited for."""
    listener = Listener(takes, only=True)
    begun = boottime_ns()
    application.crash()
    took = (listener.heard_ns() - begun) / 1e6
    listener.close()
    application.close()
    return took


def changes(stand):
    """a is told to end, b leads; b's application crashes, a leads; and so on."""
    # Readers of a shared page are promised 5 ms beside an attached application: none here.
    options = ("--drain", "none", "--ttl", "5s", "--page-dir", "off")
    a = stand.sidecar(*options)
    a.wait_leader()
    b = stand.sidecar(*options)
    trips = RoundTrips(stand.redis)
    handovers, crashes, pings = [], [], []
    for _ in range(stand.rounds(500, 15)):
        application = Listener(b)
        wait_follower(b)
        pings.append(trips.took_ms(TRIPS))
        handovers.append(handover(a, application))
        a.start()
        wait_follower(a)
        crashes.append(crash(application, a))
    trips.close()
    yield from changes_rows(handovers, crashes, pings)


def changes_rows(handovers, crashes, pings):
    against = f"{spread(pings, 'ms')}, {TRIPS} round trips to Redis"
    for name, of in (("p50", median), ("p99", p99)):
        yield at_most(f"clean handover on Redis, {name} of {len(handovers)}",
                      f"{number(of(handovers))} ms", against, of(handovers) / of(pings), 10)
        yield at_most(f"application's crash on Redis, {name} of {len(crashes)}",
                      f"{number(of(crashes))} ms", f"{number(of(handovers))} ms, a clean handover",
                      of(crashes) / of(handovers), 1.5)


def takeover(stand):
    """Three stand ready whenever the leader is killed, so that a new one is never waited for."""
    names = [stand.sidecar("--ttl", "300ms") for _ in range(4)]
    late = []
    for _ in range(stand.rounds(200, 15)):
        # Up for two ttl they can vouch for the server's clock.
        ms = killed(stand, names, settled(names, 2 * TTL_S))
        late += [] if ms is None else [ms]
    yield from takeover_rows(late)


def killed(stand, names, leads):
    """How many ms after the key's expiry another is heard to lead, None: this process was itself
    too late to ask for the expiry. The killed one is started again."""
    watches = [Watch(s) for i, s in enumerate(names) if i != leads]
    held = stand.redis.lease()
    names[leads].kill9()
    names[leads].wait()
    expiry = expiry_ms(stand.redis, held)
    _, now = first_leader(watches)
    for watch in watches:
        watch.close()
    names[leads].start()
    return None if expiry is None else late_ms(now, expiry)


def takeover_rows(late):
    yield at_most(f"takeover after kill -9 on Redis, past the key's expiry, p99 of {len(late)}",
                  spread(late, "ms"), "the expiry", p99(late), 15, "ms")


GROUPS = [("handover and crash on Redis", changes), ("takeover on Redis", takeover)]
