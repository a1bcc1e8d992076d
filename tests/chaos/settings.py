"""The settings of the sidecars: drawn from the seed, and drawn anew every few minutes, so that one
run of an hour has many of them."""

import dataclasses
import random

PODS = 3
PAGES_MS = 50  # more than the answers' own time: a page's readers are waited for that much longer
TTLS_MS = {    # a round of many servers takes its time where they all are on one host
    "redlock": (1000, 1000, 1500, 2000), "postgres": (1000, 1000, 1500, 2000),
    "redis": (600, 1000, 1000, 1500), "sentinel": (600, 1000, 1000, 1500),
    "local": (600, 1000, 1000, 1500)}
VALID_FOR_MS = (200, 2000, 2000)
DRAIN_MS = (1000, 3000)
ATTACHED = 0.6
REQUIRES = 0.5      # of those that attach, and stand only while they do
MIXED = 0.3         # some have a ttl half as long again
WAIT_REPLICAS = (0, 0, 1)  # of Sentinel's two: with the master a majority


@dataclasses.dataclass(frozen=True)
class Setting:
    ttls_ms: tuple      # by pod
    wait_ms: int        # the longest ttl here and in the setting before
    valid_for_ms: int
    drain_ms: int
    attached: tuple
    requires: tuple
    wait_replicas: int
    mode: str

    def options(self, number):
        """Where ttls differ the margin is one all the same: else a step of a server's clock may
        pass unseen."""
        longest = max(self.ttls_ms)
        options = [
            "--ttl", f"{self.ttls_ms[number]}ms", "--wait", f"{self.wait_ms}ms",
            "--margin", f"{longest // 5}ms", "--valid-for", f"{self.valid_for_ms}ms",
            "--drain", f"{self.drain_ms}ms", "--mode", self.mode]
        if self.requires[number]:
            options.append("--require-app")
        if self.wait_replicas:
            options += ["--redis-wait-replicas", str(self.wait_replicas)]
        return options

    def __str__(self):
        ttls = "/".join(str(t) for t in sorted(set(self.ttls_ms)))
        waits = f", waits for {self.wait_replicas} replica" if self.wait_replicas else ""
        return (f"{len(self.ttls_ms)} sidecars, mode {self.mode}, ttl {ttls} ms, wait "
                f"{self.wait_ms} ms, valid-for {self.valid_for_ms} ms, drain {self.drain_ms} ms, "
                f"attached: {sum(self.attached)}, {sum(self.requires)} of them required{waits}")


def draw(seed, number, store, mode, before=None):
    """The one of that number; `before`: the one that it comes after."""
    rng = random.Random(f"{seed}/setting {number}")
    ttl = rng.choice(TTLS_MS[store])
    ttls = [ttl] * PODS
    if rng.random() < MIXED:
        ttls[rng.randrange(PODS)] = ttl * 3 // 2
    valid_for, drain = rng.choice(VALID_FOR_MS), rng.choice(DRAIN_MS)
    if store == "local":
        # The lock is free with the end of the process, so that one may not come too early.
        drain = max(drain, min(valid_for, max(ttls)) + PAGES_MS)
    attached = tuple(rng.random() < ATTACHED for _ in range(PODS))
    return Setting(
        ttls_ms=tuple(ttls), wait_ms=max(*ttls, *(before.ttls_ms if before else ())),
        valid_for_ms=valid_for, drain_ms=drain, attached=attached,
        requires=tuple(a and rng.random() < REQUIRES for a in attached),
        wait_replicas=rng.choice(WAIT_REPLICAS) if store == "sentinel" else 0, mode=mode)
