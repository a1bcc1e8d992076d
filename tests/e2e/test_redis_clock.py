"""Clocks that jump, stand still or slept, the server's and the sidecar's, and silence that only a
clock can tell: nobody leads on a lease that is not there, tokens rise, and it is told."""

import time

import pytest

from e2e.cases import Host, first_wait, leader_of, led_after, logged, nonce_of, settled, told
from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.redis_server import Redis
from kit.relay import REQUEST, Relay
from kit.scripts import is_script

TTL = ("--ttl", "1s")
TTL_NS = 1 * S


@pytest.fixture
def shim(folder):
    return ClockShim(folder)


@pytest.fixture
def stepped(folder, closing, shim):
    """A server whose wall clock the shim moves."""
    return closing(Redis(folder + "/stepped", env=shim.env))


def store_steps(sidecar):
    return sidecar.metrics()['gavel_clock_steps_total{clock="store"}']


@pytest.mark.parametrize("steps", [(30, 3630), (-30, -3630)], ids=["forward", "backward"])
def test_the_servers_clock_jumps_while_the_leader_is_cut_off(steps, stepped, shim, closing, start,
                                                             sample):
    """By half a minute, then by an hour. Forward, the key has expired while the leader may still be
    trusted; backward, it would outlive the leader for as long as the clock went back."""
    relays = {f"pod-{i}": closing(Relay(stepped.port)) for i in "ab"}
    pods = [start(p, *TTL, store=r.url) for p, r in relays.items()]
    sampler = sample(pods)
    for step in steps:
        old = leader_of(pods)
        first = old.wait_leader()
        new = next(p for p in pods if p is not old)
        new.wait_state("follower")
        seen = store_steps(new)
        since = boottime_ns()
        relays[old.identity].freeze()
        shim.step(step)
        taken = sampler.wait_for_leader(since, besides=(old.identity,), timeout=15)
        assert taken.receive - since >= TTL_NS and taken.token > first.token
        assert first_wait([new], first.token)
        assert store_steps(new) > seen
        told(old, state="unknown", reason="store-unreachable")
        relays[old.identity].thaw()
        settled(pods)
    logged(new, '"event":"clock-step","clock":"store"')
    sampler.stop()


def test_the_servers_clock_jumps_under_a_leader(stepped, shim, start, observe, closing):
    """Back: its lease goes on without a gap. Forward: its key has expired, the next renewal says
    so, and its next grant waits, since nothing proves that the clock can be believed."""
    host = closing(Host(1500))
    a = start("pod-a", "--ttl", "1500ms", store=stepped.url)
    first = a.wait_leader()
    asked = observe([a])
    for offset in (-30, -3630):
        steps = store_steps(a)
        shim.step(offset)
        wait_until(lambda: store_steps(a) > steps, 5, "a renewal sees the step")
    host.kept(asked, a)
    assert 0 < stepped.cli("PTTL", stepped.lease_key("a")) <= 1500
    # The recorded end did not go back with the clock.
    wait_until(lambda: time.time() * 1e6 > int(stepped.record("a")["end"]), 5)
    shim.step(0)
    told(a, state="pending", detail="the store's clock has not been watched for long enough, or it "
                                    "stepped")
    logged(a, '"from":"leader","to":"follower"', "renewal-refused")
    assert a.wait_leader().token > first.token
    asked.check()


def test_a_suspended_host_wakes_up_as_no_leader(redis, relay, shim, start, sample):
    """CLOCK_MONOTONIC and with it all timers slept: the very first answer has to be right, before
    any of them has run."""
    a = start("pod-a", "--ttl", "3s", "--mode", "efficiency", store=relay.url, env=shim.env)
    b = start("pod-b", *TTL)
    b.wait_state("follower")
    sampler = sample([a, b], ways=("http",))
    first = sampler.wait_for_leader(0)
    assert first.replica == "pod-a"
    with a.connection() as asking, a.connection() as watching:
        watching.sendall(b"watch\n")
        lines = watching.makefile("rb")
        assert lines.readline().startswith(b"leader ")
        relay.freeze()
        a.freeze()
        asking.sendall(b"check\n")
        shim.step(30, boot=30)
        a.thaw()
        assert asking.recv(200) == b"follower -\n"
        while lines.readline().startswith(b"leader "):
            pass
    # Over for good, by BOOTTIME; not merely in doubt, by the wall clock.
    ended = wait_until(lambda: a.event("state", **{"from": "leader"}), 5)[0]
    assert ended["to"] == "unknown" and ended["reason"] in ("deadline", "paused"), ended
    told(a, state="unknown", leader=False)
    assert b.wait_leader(15).token > first.token
    relay.thaw()
    settled([a, b])
    sampler.stop()


class Sent:
    """When the relay saw requests: no earlier than they were sent."""

    def __init__(self, relay, good_for_ns):
        self.at = []
        self._good_for_ns = good_for_ns
        self._relay, self._reply_after_ns, self._at_once = relay, 0, 0
        wanted = [is_script("acquire"), is_script("renew")]

        def tap(direction, data, arrived_ns):
            if direction == REQUEST and any(w(data) for w in wanted):
                self.at.append(arrived_ns)
        relay.tap = tap

    def delay_replies(self, delay_ms):
        """From now on; returns how many requests there were until then."""
        self._relay.delay(reply_ms=delay_ms)
        self._reply_after_ns, self._at_once = delay_ms * MS, len(self.at)
        return self._at_once

    def bound_ns(self, answered_ns):
        """The latest deadline that an answer of that moment may have."""
        return max(at for i, at in enumerate(list(self.at)) if i < self._at_once or
                   at + self._reply_after_ns <= answered_ns) + self._good_for_ns


def lead_until_the_deadline(sidecar, sent):
    """Every answer is within what was sent; returns when there is no leader any more."""
    def over():
        check = sidecar.check()
        assert not check.leader or check.deadline <= sent.bound_ns(check.receive), \
            (check.deadline - sent.bound_ns(check.receive)) / MS
        return not check.leader
    wait_until(over, 10, "not leader any more")


def test_the_deadline_counts_from_the_sending(redis, relay, start):
    """Not from the reply: what the server extended is as old as the request may be."""
    sent = Sent(relay, 2400 * MS)
    a = start("pod-a", "--ttl", "3s", "--valid-for", "3s", "--mode", "efficiency", store=relay.url)
    first = a.wait_leader()
    count = sent.delay_replies(300)
    wait_until(lambda: len(sent.at) > count, 5, "a renewal whose reply is late")
    while len(sent.at) < count + 3:
        check = a.check()
        assert not check.leader or check.deadline <= sent.bound_ns(check.receive)
    # Six tenths of the ttl is more than a renewal is waited for, though each is carried out.
    relay.delay(reply_ms=1800)
    lead_until_the_deadline(a, sent)
    told(a, state="unknown", reason="store-unreachable", detail="the store does not answer")
    assert redis.lease() is not None
    relay.delay()
    assert a.wait_leader().token > first.token


def test_a_server_that_hangs_without_a_word_ends_the_lead_by_the_clock(redis, relay, start):
    """No event ever comes, and watchers are told all the same."""
    sent = Sent(relay, 800 * MS)
    a = start("pod-a", *TTL, "--mode", "efficiency", store=relay.url)
    first = a.wait_leader()
    with a.connection() as watching:
        watching.sendall(b"watch\n")
        lines = watching.makefile("rb")
        redis.freeze()
        lead_until_the_deadline(a, sent)
        line = b"leader"
        while line.startswith(b"leader"):
            line = lines.readline()
        assert line == b"follower -\n"
    told(a, state="unknown", reason="store-unreachable", detail="the store does not answer")
    redis.thaw()
    assert a.wait_leader().token > first.token


def test_a_paused_machine_is_told_by_the_wall_clock(redis, relay, shim, start):
    """Neither of its other clocks has seen the pause. Until the store has vouched for the lease
    there is no leader; then the same grant goes on."""
    a = start("pod-a", "--ttl", "3s", "--mode", "efficiency", store=relay.url, env=shim.env)
    first = a.wait_leader()
    index = a.status()["index"]
    relay.freeze()
    with a.connection() as asking:
        shim.step(60)
        asking.sendall(b"check\n")
        assert asking.recv(200) == b"follower -\n"
    status = a.status()
    assert status["leader"] is False and status["reason"] in ("clock-step", "store-unreachable")
    relay.thaw()
    assert a.wait_leader(5).token == first.token
    logged(a, '"from":"leader","to":"unknown"', "clock-step")
    assert a.status()["index"] >= index + 2
    wait_until(lambda: a.metrics()['gavel_clock_steps_total{clock="real"}'] == 1, 5)


def test_a_wall_clock_that_steps_back_neither_ends_nor_extends_the_lease(redis, relay, shim, start,
                                                                         observe, closing):
    host = closing(Host(3000))
    sent = Sent(relay, 2400 * MS)
    a = start("pod-a", "--ttl", "3s", "--valid-for", "3s", "--mode", "efficiency",
              store=relay.url, env=shim.env)
    a.wait_leader()
    asked = observe([a])
    since = boottime_ns()
    shim.step(-3600)
    wait_until(lambda: boottime_ns() - since > 1500 * MS)
    host.kept(asked, a)
    relay.freeze()
    shim.step(-7200)
    lead_until_the_deadline(a, sent)
    told(a, state="unknown", reason="store-unreachable")
    asked.check()


def test_a_server_whose_clock_stands_still(stepped, shim, start, sample):
    """Its keys never expire: tokens rise all the same, nobody takes a lock from the dead, and those
    who wait say what is wrong."""
    shim.rate("real", 0)
    pods = [start(f"pod-{i}", *TTL, "--valid-for", "200ms", store=stepped.url) for i in "ab"]
    sampler = sample(pods)
    for _ in range(3):
        old, _ = settled(pods)
        change = old.wait_leader()
        assert old.ask("resign") == "ok"
        led_after(sampler, change.token)
    old, new = settled(pods)
    change = old.wait_leader()
    old.kill9()
    held, steps, since = stepped.lease(), store_steps(new), boottime_ns()
    wait_until(lambda: boottime_ns() - since > 2 * TTL_NS)
    assert stepped.lease() == held and not new.leads()
    stands = "the server's clock stands still: no lease in it runs out"
    told(new, state="follower", reason="held-by-other", holder=old.identity, detail=stands)
    assert stands in new.probe("/readyz?verbose").body.decode()
    logged(new, '"event":"clock-step","clock":"store"')
    wait_until(lambda: store_steps(new) > steps, 5, "it goes on telling")
    shim.rate("real", 1)
    assert new.wait_leader().token > change.token
    assert nonce_of(stepped.lease()) != nonce_of(held)
    sampler.stop()
