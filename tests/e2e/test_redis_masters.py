"""Replication and failover: what one master said another need not know. With the old master gone
two leaders never appear; while it still answers, tokens tell them apart and the status warns."""

import pytest

from e2e.cases import first_wait, led_after, lost, newest, settled, told
from kit.clock import MS, S, boottime_ns, wait_until
from kit.clockshim import ClockShim
from kit.redis_server import Redis

TTL = ("--ttl", "1s")
TTL_NS = 1 * S


def test_failover_to_a_replica_that_never_received_the_lock(redis, replica, link, relay, start,
                                                            sample):
    """Its holder hears of it at its next renewal, not at its deadline; whoever is next waits until
    the old lease cannot be trusted any more, and has a greater token."""
    link.freeze()
    a = start("pod-a", *TTL, store=relay.url)
    a.wait_leader()
    b = start("pod-b", *TTL, store=relay.url)
    b.wait_state("follower")
    sampler = sample([a, b])
    sampler.wait_for_leader(0)
    redis.kill()
    link.sever()
    replica.cli("REPLICAOF", "NO", "ONE")
    assert replica.lease() is None and replica.record() == {}
    first, since = newest(sampler), boottime_ns()
    relay.switch(replica.port)
    lost(a, "renewal-refused")
    taken = led_after(sampler, first)
    assert taken.receive - since >= TTL_NS
    assert "no full record" in first_wait([a, b], first)
    settled([a, b])
    sampler.stop()


def test_two_masters_after_a_partition_are_told_apart_by_their_tokens(redis, replica, link, start):
    """Nothing in the old master's answers tells that another was promoted: its leader stays one.
    That this may happen is in its status all the time, and the other's token is greater."""
    a = start("pod-a", *TTL)
    first = a.wait_leader()
    told(a, state="leader", warning="store-replicated-async")
    wait_until(lambda: replica.lease() == redis.lease(), 5)
    link.freeze()
    replica.cli("REPLICAOF", "NO", "ONE")
    b = start("pod-b", *TTL, store=replica.url)
    second = b.wait_leader()
    assert second.token > first.token
    assert "another server" in first_wait([b], first.token)
    since = boottime_ns()
    wait_until(lambda: boottime_ns() - since > TTL_NS / 2)
    assert a.wait_leader(1).token == first.token and b.wait_leader(1).token == second.token
    told(a, state="leader", warning="store-replicated-async")
    assert a.status()["lock_space"] != b.status()["lock_space"]
    # Whoever ends the partition ends the older one's lead.
    link.sever()
    redis.cli("REPLICAOF", "127.0.0.1", replica.port)
    told(a, leader=False, token=None, reason="store-refused", detail="not a master")
    assert not a.leads() and b.wait_leader(1).token == second.token
    assert a.process.poll() is None


def test_a_cut_off_master_that_wants_its_replica_ends_the_lead_by_the_deadline(
        redis, replica, link, start, sample):
    """With min-replicas-to-write there is no second leader: nothing is renewed on the old side."""
    redis.cli("CONFIG", "SET", "min-replicas-to-write", "1")
    a = start("pod-a", *TTL)
    first = a.wait_leader()
    wait_until(lambda: replica.lease() == redis.lease(), 5)
    b = start("pod-b", *TTL, store=replica.url)
    told(b, leader=False, reason="store-refused")
    sampler = sample([a, b])
    sampler.wait_for_leader(0)
    link.sever()
    replica.cli("REPLICAOF", "NO", "ONE")
    told(a, state="unknown", reason="store-refused", detail="NOREPLICAS")
    # Between two attempts, when the server has answered something, it may say nothing.
    wait_until(lambda: "NOREPLICAS" in a.probe("/readyz?verbose").body.decode(), 10)
    assert b.wait_leader().token > first.token
    sampler.stop()


@pytest.fixture
def skewed(link, folder, closing):
    """A replica with a wall clock of its own, and its shim."""
    shim = ClockShim(folder)
    server = closing(Redis(folder + "/skewed", ["--replicaof", f"127.0.0.1 {link.port}"],
                           env=shim.env))
    wait_until(lambda: "master_link_status:up" in server.cli("INFO", "replication"), 10)
    return server, shim


def test_a_replica_with_a_clock_ahead_is_promoted(redis, skewed, relay, start, sample):
    """Expiries are replicated as moments: there the key has expired before its time."""
    replica, shim = skewed
    shim.step(20)
    a = start("pod-a", *TTL, store=relay.url)
    a.wait_leader()
    pods = [a, start("pod-b", *TTL, store=relay.url)]
    pods[1].wait_state("follower")
    sampler = sample(pods)
    sampler.wait_for_leader(0)
    wait_until(lambda: replica.record() == redis.record(), 5)
    redis.kill()
    first, since = newest(sampler), boottime_ns()
    replica.cli("REPLICAOF", "NO", "ONE")
    relay.switch(replica.port)
    lost(a, "renewal-refused")
    taken = led_after(sampler, first)
    assert taken.receive - since >= TTL_NS
    assert "another server" in first_wait(pods, first)
    settled(pods)
    sampler.stop()


def test_a_replica_with_a_clock_behind_is_promoted(redis, skewed, relay, start, sample):
    """There the key lives for longer than it should: its holder goes on, and when that is gone
    the next one does not wait for the wrong clock."""
    replica, shim = skewed
    shim.step(-3600)
    a = start("pod-a", *TTL, store=relay.url)
    first = a.wait_leader()
    b = start("pod-b", *TTL, store=relay.url)
    b.wait_state("follower")
    sampler = sample([a, b])
    sampler.wait_for_leader(0)
    wait_until(lambda: replica.lease() == redis.lease(), 5)
    redis.kill()
    replica.cli("REPLICAOF", "NO", "ONE")
    # Before anybody has asked: an hour and more.
    assert replica.cli("PTTL", replica.lease_key("a")) > 3000 * S // MS
    relay.switch(replica.port)
    wait_until(lambda: 0 < replica.cli("PTTL", replica.lease_key("a")) <= 1000, 5)
    assert a.wait_leader(2).token == first.token
    told(a, state="leader", reason="renewed")
    a.kill9()
    second = b.wait_leader(15)
    assert second.token > first.token
    told(b, state="leader")
    sampler.stop()
