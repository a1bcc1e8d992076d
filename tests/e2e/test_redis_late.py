"""What comes too late, from an earlier grant or another life: requests that were held up on the
way, a process that was stopped, state of a lease that is over. It harms nobody who came after."""

import os
import threading

import pytest

from e2e.cases import logged, nonce_of, settled, told
from kit.clock import S, boottime_ns, wait_until
from kit.relay import Relay
from kit.scripts import is_script
from kit.sidecar import Sidecar

TTL = ("--ttl", "1s", "--valid-for", "200ms")
TTL_NS = 1 * S

# Commands that change a key, wherever they come from.
WRITES = ("SET", "DEL", "UNLINK", "PEXPIRE", "PEXPIREAT", "EXPIRE", "PERSIST", "HSET", "HDEL")


def arrives_late(relay, monitor, nonce):
    """Lets go what the relay holds; returns what the server did in the call that came of it."""
    monitor.catch_up()
    before = len(monitor.scripts(nonce))
    relay.thaw()
    call = monitor.wait_script(nonce, after=before)
    return [c for c in monitor.inside(call) if c.name in WRITES]


def hold(relay, script, timeout=10):
    relay.hold_request_when(is_script(script))
    wait_until(lambda: relay.holding, timeout, f"a held {script}")


def test_a_renewal_that_arrives_late_never_makes_the_key_anew(redis, relay, monitor, start,
                                                               sample):
    """The next one has led meanwhile, and given the lock back: nothing lies there."""
    a = start("pod-a", *TTL, store=relay.url)
    first = a.wait_leader()
    nonce = nonce_of(redis.lease())
    b = start("pod-b", *TTL)
    b.wait_state("follower")
    sampler = sample([a, b], ways=("socket",))
    hold(relay, "renew")
    a.kill9()
    second = b.wait_leader()
    assert second.token > first.token
    assert b.ask("resign") == "ok"
    assert redis.lease() is None
    record = redis.record()
    assert arrives_late(relay, monitor, nonce) == []
    assert redis.lease() is None and redis.record() == record
    a.start()
    assert a.wait_leader().token > second.token
    sampler.stop()


def test_release_and_renewal_of_an_older_grant_leave_the_successor_alone(
        redis, relay, monitor, closing, start, sample):
    """Each of them is done anew over another connection when no reply came; the first copy arrives
    only when another leads."""
    ways = {"pod-a": relay, "pod-b": closing(Relay(redis.port))}
    pods = [start(p, *TTL, store=way.url) for p, way in ways.items()]
    sampler = sample(pods)
    for script in ("release", "renew"):
        old, new = settled(pods)
        way, token = ways[old.identity], old.wait_leader().token
        nonce = nonce_of(redis.lease())
        way.hold_request_when(is_script(script))
        if script == "renew":
            wait_until(lambda: way.holding, 5, "a held renewal")
        assert old.ask("resign") == "ok"
        assert way.holding == 1
        assert new.wait_leader().token > token
        assert arrives_late(way, monitor, nonce) == []
    sampler.stop()
    monitor.catch_up()
    bare = [c for c in monitor.commands if redis.lease_key("a") in c.rest and not c.in_script
            and c.name not in ("EVAL", "EVALSHA", "GET", "HGETALL")]
    assert bare == []


@pytest.mark.parametrize("reply", ["in time", "never"])
def test_a_renewal_in_flight_does_not_outlive_a_resignation(redis, relay, monitor, start, reply):
    """Whether its reply comes while it resigns, or the request only once the lock is given back."""
    a = start("pod-a", *TTL, "--mode", "efficiency", store=relay.url)
    for _ in range(3):
        led = len(a.event("state", to="leader"))
        a.wait_state("leader")
        nonce = nonce_of(redis.lease())
        hold(relay, "renew")
        answers, asked_ns = [], boottime_ns()
        asking = threading.Thread(target=lambda: answers.append(a.ask("resign")))
        asking.start()
        logged(a, '"to":"resigning"')
        if reply == "in time":
            relay.thaw()
        asking.join(10)
        assert answers == ["ok"]
        if reply == "never":
            assert arrives_late(relay, monitor, nonce) == []
        # It stands back for W: until then nothing may lie there again.
        while boottime_ns() - asked_ns < TTL_NS:
            lease = redis.lease()
            assert lease is None or boottime_ns() - asked_ns >= TTL_NS
        logged(a, '"from":"resigning","to":"follower","reason":"resigned"')
        wait_until(lambda: len(a.event("state", to="leader")) > led, 10, "it leads again")


def test_two_processes_with_one_identity(redis, start, sample, closing, folder):
    """Stopped and let go, the first one does not take the lease of its namesake for its own."""
    a = start("node-1", *TTL)
    first = a.wait_leader()
    os.mkdir(folder + "/2")
    b = closing(Sidecar(folder + "/2", redis.url, "node-1", options=TTL))
    b.identity = "the second node-1"  # for the sampler
    b.wait_state("follower")
    told(b, state="follower", holder="node-1~" + nonce_of(redis.lease()))
    told(b, warning="identity-not-unique")
    sampler = sample([a, b])
    sampler.wait_for_leader(0)
    a.freeze()
    taken = sampler.wait_for_leader(besides=("node-1",))
    assert taken.token > first.token
    held = redis.lease()
    with a.connection() as asking:
        asking.sendall(b"check\n")
        a.thaw()
        assert asking.recv(200).startswith(b"follower ")
    told(a, state="follower", reason="held-by-other", holder="node-1~" + nonce_of(held))
    assert redis.lease() == held
    assert b.wait_leader(1).token == taken.token
    told(b, state="leader", holder="node-1")
    sampler.stop()


def shown(status):
    return status["token"], status["since"], status["index"]


def test_nothing_of_an_earlier_grant_is_left_in_the_next(redis, start, observe):
    """Whoever asked only before and after sees by every member that leadership was gone between.
    And who has lost it can always be elected again."""
    names = [f"job-{i}" for i in range(8)]
    a = start("pod-a", "--ttl", "600ms", "--mode", "efficiency", elections=names)
    asked = observe([a])
    seen = {n: [] for n in names}

    def next_grant(name):
        status = a.status(name)
        last = seen[name][-1][0] if seen[name] else 0
        return status if status["leader"] and status["token"] > last else None
    for _ in range(7):
        for name in names:
            status = wait_until(lambda: next_grant(name), 10, "a later grant")
            assert status["holder"] == "pod-a" and status["reason"] in ("acquired", "renewed")
            seen[name].append(shown(status))
            redis.cli("PEXPIRE", redis.lease_key(name), 1)
    for name in names:
        for members in zip(*seen[name]):
            assert len(set(members)) == len(members) == 7, (name, members)
        tokens = [token for token, _, _ in seen[name]]
        indexes = [index for _, _, index in seen[name]]
        assert tokens == sorted(tokens) and indexes == sorted(indexes)
    asked.check()


def test_leadership_that_was_anothers_in_between_is_a_new_grant(redis, relay, start, sample):
    a = start("pod-a", *TTL, store=relay.url)
    a.wait_leader()
    b = start("pod-b", *TTL)
    b.wait_state("follower")
    sampler = sample([a, b])
    before = told(a, state="leader")
    relay.freeze()
    redis.cli("DEL", redis.lease_key("a"))
    between = b.wait_leader()
    relay.thaw()
    told(a, state="follower", reason="held-by-other", holder="pod-b")
    assert b.ask("resign") == "ok"
    a.wait_leader()
    after = told(a, state="leader")
    assert before["token"] < between.token < after["token"]
    assert after["since"] > before["since"] and after["index"] > before["index"]
    sampler.stop()
