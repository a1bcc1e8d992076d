"""Three sidecars on a real Redis, asked without pause over HTTP and the socket, through rounds of
everything that ends a leadership. The history of all answers is judged."""

import os
import random

from kit.clock import MS, S, boottime_ns, wait_until
from kit.latency import Latency
from kit.sidecar import LONG, SLACK_MS, TIMING, run, GAVEL

TTL_NS = 1 * S
ROUNDS = 200 if LONG else 12
SEED = int(os.environ.get("GAVEL_SEED", "20261201"))


# A round trip of margin/4 (50 ms) or more is no measurement of the server's clock, and has two
# wake-ups in it: on a host that is later than half of that nobody can vouch.
LATE_HOST_NS = 25 * MS
# On one that is as late as this every now and then, any number of rounds may be.
BUSY_HOST_NS = 100 * MS


class Rounds:
    def __init__(self, pods, sampler, latency):
        self.pods = pods
        self.sampler = sampler
        self.latency = latency
        self.excused = 0
        self.took = []  # (kind, ms, bound)
        self.up_since = {p: p.started_ns for p in pods}

    def others(self, pod):
        return [p for p in self.pods if p is not pod]

    def has_watched_for_w(self, pod):
        """It can vouch for the server's clock: up for W without a pause, and a little to get
        there."""
        return boottime_ns() - self.up_since[pod] > 2 * TTL_NS

    def start(self, pod):
        pod.start()
        self.up_since[pod] = pod.started_ns

    def settle(self):
        """The leader; when there is one and a follower that may take over at the expiry."""
        def settled():
            leaders = [p for p in self.pods if p.leads()]
            return leaders if len(leaders) == 1 and \
                any(self.has_watched_for_w(p) for p in self.others(leaders[0])) else None
        return wait_until(settled, 20, "one leader, and a follower up for W")[0]

    def taken_over(self, kind, old, since, bound_ms):
        change = self.sampler.wait_for_leader(since, besides=(old.identity,))
        took = change.receive - since - self.sampler.stalled_ns(since, change.receive)
        bound_ms += SLACK_MS
        self.took.append((kind, took // MS, bound_ms))
        if took > bound_ms * MS:
            # Who was late before it could not measure the server's clock either.
            host = self.latency.worst_ns(since - 2 * TTL_NS, change.receive)
            self.excused += host > LATE_HOST_NS
            print(f"late: {kind} of {old.identity} taken over after {took // MS} ms; the host was "
                  f"late by {host // MS} ms")
            for pod in self.others(old):
                up = (boottime_ns() - self.up_since[pod]) // MS
                print(f"  {pod.identity}, up without a pause for {up} ms, said at last:",
                      *pod.text[-4:], sep="\n    ")
        return change

    def kill(self, leader):
        since = boottime_ns()
        leader.kill9()
        self.taken_over("kill -9", leader, since, TTL_NS // MS + 100)
        leader.wait()
        self.start(leader)

    def terminate(self, leader):
        # What `--drain none` is for: the application has ended before its sidecar is told to.
        self.sampler.readers("stop", leader)
        since = boottime_ns()
        leader.terminate()
        self.taken_over("SIGTERM", leader, since, 100)
        assert leader.wait() == 0
        self.start(leader)
        self.sampler.readers("resume", leader)

    def resign(self, leader):
        since = boottime_ns()
        done = run(GAVEL, "resign", "--socket", leader.socket_path)
        assert done.returncode == 0, done.stderr
        # It waits for the validity that was handed out just before: a whole lease at most.
        self.taken_over("resign", leader, since, 800 + 200)
        self.up_since[leader] = boottime_ns()  # it stands back for W: no follower to count on

    def pause(self, leader):
        since = boottime_ns()
        leader.freeze()
        change = self.taken_over("kill -STOP", leader, since, TTL_NS // MS + 100)
        wait_until(lambda: boottime_ns() > since + 1.2 * TTL_NS)
        thawed = boottime_ns()
        leader.thaw()
        self.up_since[leader] = thawed
        first = leader.check()
        assert not first.leader or first.token > change.token, "it woke up as the old leader"
        late = [c for c in self.sampler.changes if c.replica == leader.identity and c.leader
                and c.receive > thawed and c.token < change.token and c.deadline > c.receive]
        assert not late, late


def play(start, sample, closing, store=lambda identity: None, count=ROUNDS):
    """`store` gives the URL for a sidecar; None: the one Redis."""
    rng = random.Random(SEED)
    began = boottime_ns()
    pods = [start(f"pod-{i}", "--ttl", "1s", "--drain", "none", fixed_port=True,
                  store=store(f"pod-{i}")) for i in "abc"]
    sampler = sample(pods, every_ms=0 if LONG else 2)
    rounds = Rounds(pods, sampler, closing(Latency()))
    kinds = [rounds.kill, rounds.terminate, rounds.pause, rounds.resign]
    plan = []
    while len(plan) < count:  # each kind as often as the others, in random order
        plan += rng.sample(kinds, len(kinds))
    for act in plan[:count]:
        act(rounds.settle())
    rounds.settle()
    summary = sampler.stop()
    print(f"\n{summary['answers']} answers, {summary['leaders']} of them leader, "
          f"{summary['grants']} grants, seed {SEED}")
    for kind in ("kill -9", "SIGTERM", "kill -STOP", "resign"):
        times = sorted(ms for k, ms, _ in rounds.took if k == kind)
        print(f"{kind:10} taken over after {times} ms")
    assert summary["grants"] >= count
    if TIMING:
        late = [t for t in rounds.took if t[1] > t[2]]
        assert len(late) == rounds.excused, late
        if rounds.latency.worst_ns(began, boottime_ns()) < BUSY_HOST_NS:
            assert rounds.excused <= max(count // 6, 1), late


def test_rounds_of_everything_that_ends_a_leadership(start, sample, closing):
    play(start, sample, closing)
