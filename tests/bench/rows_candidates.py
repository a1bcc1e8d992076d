"""1, 10, 100 and 500 candidates of one election on one Redis."""

import time

from bench.figures import at_most, median, number, p99, spread
from bench.rows_elections import scripts_called
from bench.stand import Watch, expiry_ms, first_leader, late_ms
from kit.clock import S, boottime_ns, wait_until

TTL_S = 3
COUNTS = (1, 10, 100, 500)


def commands_each(stand, count, seconds):
    """Scripts that one candidate calls in a ttl/3."""
    begun, before = boottime_ns(), scripts_called(stand.redis)
    time.sleep(seconds)
    lasted = (boottime_ns() - begun) / S
    return (scripts_called(stand.redis) - before) / lasted * (TTL_S / 3) / count


def takeovers(stand, sidecars, rounds):
    """How many ms past the key's expiry each was heard. The killed ones stay away."""
    late = []
    watches = {s: Watch(s) for s in sidecars}
    for _ in range(rounds):
        names = list(watches)
        leader = wait_until(lambda n=names: next((s for s in n if s.leads()), None), 30)
        watches.pop(leader).close()
        for watch in watches.values():  # what they have heard until now is no news
            watch.socket.setblocking(False)
            drain(watch.socket)
        held = stand.redis.lease()
        leader.kill9()
        leader.wait()
        expiry = expiry_ms(stand.redis, held)
        _, now = first_leader(list(watches.values()))
        if expiry is not None:  # else this process was itself too late to ask for it
            late.append(late_ms(now, expiry))
    for watch in watches.values():
        watch.close()
    return late


def drain(socket):
    try:
        while socket.recv(4096):
            pass
    except BlockingIOError:
        pass


def candidates(stand):
    counts = COUNTS[:3] if stand.quick else COUNTS
    rounds = stand.rounds(10, 3)
    sidecars, late = [], {}
    for count in counts:
        while len(sidecars) < count:
            sidecars.append(stand.sidecar("--ttl", f"{TTL_S}s"))
        wait_until(lambda: any(s.leads() for s in sidecars), 30)
        time.sleep(2 * TTL_S)  # all can vouch for the server's clock
        each = commands_each(stand, count, TTL_S * stand.rounds(4, 1))
        yield at_most(f"{count} candidates, scripts each in a ttl/3", number(each), "one", each, 1.05)
        if count > rounds:
            found = takeovers(stand, sidecars, rounds)
            late.update({count: found} if found else {})
        sidecars = [s for s in sidecars if s.process.poll() is None]
    yield from takeover_rows(late)


def takeover_rows(late):
    fewest = min(late, default=0)
    for count, values in late.items():
        yield at_most(f"takeover with {count} candidates, past the key's expiry",
                      spread(values, "ms"), f"p50 {number(median(late[fewest]))} ms with {fewest}",
                      p99(values), 15, "ms")


GROUPS = [("many candidates", candidates)]
