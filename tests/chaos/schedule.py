"""Which faults come when: rounds, drawn from a seed; after each round all has to be well again."""

import dataclasses
import random
import threading
import time
import traceback

from chaos import healing
from chaos.faults import of_store
from chaos.healing import Found
from kit.clock import MS, S, boottime_ns, wait_until

OF_STORES = ("server", "disk", "sentinel")
OF_WAYS = ("link", "relay")
HEARD_S = 60  # by then each application has an answer in each way, when all is well


@dataclasses.dataclass(frozen=True)
class Planned:
    at: float        # seconds from the start of the round
    kind: object
    pod: int         # which; -1: the one that leads then
    seconds: float
    seed: str


def plan(seed, number, store, root, length, ttl_s, pods):
    """The faults of one round: from the seed and the round's number alone."""
    rng = random.Random(f"{seed}/round {number}")
    world = rng.choice(("clock", "amnesia"))
    kinds = [k for k in of_store(store, root) if k.world in ("", world)]
    planned = []
    for i in range(max(2, round(length * rng.choice((1.0, 2.0, 3.5))))):
        at = rng.uniform(0, length * 0.8)
        seconds = ttl_s * 10 ** rng.uniform(-0.8, 0.5)
        planned.append(Planned(at, rng.choices(kinds, [k.weight for k in kinds])[0],
                               rng.choice((-1, -1, *range(pods))),
                               max(0.05, min(seconds, length - at)), f"{seed}/{number}/{i}"))
    return world, sorted(planned, key=lambda p: p.at)


class Act:
    """One fault under way, as it sees the world."""

    def __init__(self, rounds, planned, pod, server):
        self.stand, self.rounds = rounds.stand, rounds
        self.pod, self.server = pod, server
        self.seconds = planned.seconds
        self.struck = True
        self.rng = random.Random(planned.seed)

    def wait(self, seconds):
        self.rounds.stopping.wait(seconds)

    def over(self):
        return self.rounds.stopping.is_set()

    def void(self):
        """There was nothing to strike: it is not counted."""
        self.struck = False

    def resigned(self, since):
        return self.rounds.story.resigned(self.pod.name, since)


class Rounds:
    def __init__(self, stand, pods, story, store, seed, latency):
        self.stand, self.pods, self.story = stand, pods, story
        self.store, self.seed, self.latency = store, seed, latency
        self.stopping = threading.Event()
        self.failures = story.failures
        self.healed_s = []
        self.unjudged = 0       # rounds after which nobody led in time, on a host that was too late
        self.skipped = 0        # whom they would have struck was being struck already
        self.void = 0           # there was nothing to strike
        self._busy = set()
        self._lock = threading.Lock()
        self._behind_until = 0  # a server's clock is not behind its tokens any more

    def run_round(self, number, length):
        """False: it makes no sense to go on."""
        world, planned = plan(self.seed, number, self.store, self.stand.networks, length,
                              self.stand.ttl_ms / 1000, len(self.pods))
        if world == "amnesia":
            self.stopping.wait(max(0, self._behind_until - boottime_ns()) / S)
        began = boottime_ns()
        threads = []
        for p in planned:
            self.stopping.wait(max(0, began + p.at * S - boottime_ns()) / S)
            if self.stopping.is_set():
                break
            threads.append(threading.Thread(target=self._strike, args=(p,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if world == "clock":
            self._behind_until = boottime_ns() + 4 * S
        return not self.failures and self._heal()

    def _whom(self, p, pod, number):
        if p.kind.on in OF_STORES:
            return f"{p.kind.on} {number}" if self.stand.independent else p.kind.on
        return "all pods" if p.kind.on in OF_WAYS and self.stand.one_way else pod.name

    def _strike(self, p):
        pod = self._choose(p)
        count = len(self.stand.targets())
        number = random.Random(p.seed + "/server").randrange(count) if count else 0
        whom = self._whom(p, pod, number)
        key = p.kind.on, whom
        with self._lock:
            if key in self._busy:
                self.skipped += 1
                return
            self._busy.add(key)
        start = boottime_ns()
        act = Act(self, p, pod, self.stand.targets()[number] if count else None)
        try:
            p.kind.act(act)
        except BaseException:
            self.failures.append(f"{p.kind.name}: {traceback.format_exc()}")
        finally:
            with self._lock:
                self._busy.discard(key)
                self.void += not act.struck
            if act.struck:
                self.story.tell("fault", p.kind.name, whom, start, boottime_ns())

    def _choose(self, p):
        if p.pod >= 0:
            return self.pods[p.pod]
        leader = self.story.leader()
        if leader and boottime_ns() - leader[1] < 2 * self.stand.ttl_ms * MS:
            return next(pod for pod in self.pods if pod.name == leader[0])
        return self.pods[0]

    def bound_s(self):
        """How long it takes at most on a quiet host until one leads: the old lease runs out, a new
        grant waits; who has stood down stands back for as long; connections, and restarts."""
        return 4 * self.stand.ttl_ms / 1000 + 4

    def _heal(self):
        self.stand.calm()
        at = boottime_ns()
        bound_ns = int(self.bound_s() * S)
        found = Found.WAITS
        while found is Found.WAITS:
            if not self._all_run():
                return False
            leader, now = self.story.leader(at), boottime_ns()
            led = leader and leader[1]
            # What is late by that much may let leases run out, whatever one does.
            late = self.latency.late(at, now, self.stand.least_ttl_ms * MS // 10)
            found = healing.judge(at, now, led, bound_ns, late)
            time.sleep(0.01)
        if found is Found.UNJUDGED:
            self.unjudged += 1
            self.story.tell("unjudged", at, led)
            return self._all_heard(at)
        self.story.tell("healed", at, led, healing.until_ns(at, bound_ns))
        if led:
            self.healed_s.append((led - at) / S)
        return found is Found.LED and self._all_heard(at)

    def _all_run(self):
        """Whether everything still runs that has to, the harness too."""
        for pod in self.pods:
            status = pod.sidecar.process.poll()
            if status is not None:
                pod.ended_with(status, "ended", f"{pod.name} has ended", self.story)
                return False
            if pod.app.process.poll() is not None:
                self.failures.append(f"the application of {pod.name} has ended")
        return not self.failures and not self.stopping.is_set()

    def _all_heard(self, since):
        """Each application goes on in each way: else nothing would be held against what is not
        heard."""
        end = boottime_ns() + HEARD_S * S
        while self._all_run():
            silent = [f"{pod.name} by {way}" for pod in self.pods for way in pod.ways()
                      if not self.story.heard(pod.name, pod.app.life, way, since)]
            if not silent:
                return True
            if boottime_ns() > end:
                self.failures.append(f"for {HEARD_S} s no answer came to {', '.join(silent)}")
            time.sleep(0.02)
        return False

    def wait_first(self):
        wait_until(lambda: self.story.leader(), 60, "one leads before any fault")
